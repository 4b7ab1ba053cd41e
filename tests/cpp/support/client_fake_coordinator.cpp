#include "tests/cpp/support/client_fake_coordinator.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <new>

#include "csrc/base/clock.h"
#include "csrc/ipc/futex.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"

namespace gpushare::client {
namespace {

constexpr JobId kJob{7};

wire::Address address() {
  wire::Address of;
  of.job = kJob;
  return of;
}

}  // namespace

FakeCoordinator::FakeCoordinator(std::string path, FakeSettings settings)
    : path_(std::move(path)), settings_(std::move(settings)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  Result<UniqueFd> listener = ipc::listen_at(path_, 0600);
  if (!listener.has_value()) {
    ADD_FAILURE() << listener.error().to_string();
    return;
  }
  listener_ = std::move(*listener);
  thread_ = std::thread([this] { run(); });
}

FakeCoordinator::~FakeCoordinator() {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
  if (thread_.joinable()) thread_.join();
  ::unlink(path_.c_str());
}

void FakeCoordinator::run() {
  while (true) {
    int connection = -1;
    {
      const std::scoped_lock lock(mutex_);
      connection = connection_.get();
    }
    std::array<pollfd, 3> entries{{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = listener_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = connection, .events = POLLIN, .revents = 0}}};
    ::poll(entries.data(), entries.size(), -1);
    if (entries[0].revents != 0) return;
    if (entries[1].revents != 0) {
      Result<UniqueFd> accepted = ipc::accept_from(listener_.get());
      const std::scoped_lock lock(mutex_);
      if (accepted.has_value()) connection_ = std::move(*accepted);
    } else if (entries[2].revents != 0) {
      serve(connection);
    }
  }
}

void FakeCoordinator::serve(int connection) {
  Result<ipc::Packet> packet = ipc::receive_packet(connection, wire::kMaxMessageBytes);
  const std::scoped_lock lock(mutex_);
  if (!packet.has_value()) return;
  if (packet->is_end) {
    connection_.reset();
    return;
  }
  Result<wire::JobMessage> message = wire::decode_from_job(packet->bytes);
  if (!message.has_value()) {
    ADD_FAILURE() << message.error().to_string() << " in " << packet->bytes;
    return;
  }
  handle(*message);
  received_.push_back(std::move(*message));
  changed_.notify_all();
}

// Under mutex_, like all that call it. A job that has gone meanwhile needs no answer.
void FakeCoordinator::reply(const wire::CoordinatorMessage& message, const std::vector<int>& fds) {
  const Status status = ipc::send_packet(connection_.get(), wire::encode(message), fds);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnavailable) << status.to_string();
}

void FakeCoordinator::handle(const wire::JobMessage& message) {
  if (const auto* hello = std::get_if<wire::Hello>(&message)) on_hello(*hello);
  if (std::holds_alternative<wire::Register>(message)) on_register();
  if (settings_.explains && std::holds_alternative<wire::Explain>(message)) {
    reply(wire::Explained{.of = address(), .text = "job 9 holds the device"});
  }
  if (const auto* released = std::get_if<wire::Released>(&message)) room_ -= released->bytes;
  const auto* need = std::get_if<wire::Need>(&message);
  if (need != nullptr && settings_.grants_room) {
    room_ += need->like;
    reply(wire::Grant{.of = address(), .n = next_n_++, .need_n = need->n, .room = room_});
  }
}

void FakeCoordinator::on_hello(const wire::Hello& hello) {
  room_ = hello.resident;
  held_ = hello.held_term;
  term_ = std::max(term_, held_);
  next_n_ = 1;
  if (!settings_.refuses_hello.empty()) {
    const wire::Refused refused{.reason = settings_.refuses_hello};
    reply(refused);
    connection_.reset();
    return;
  }
  if (!settings_.welcomes) return;
  const wire::Welcome welcome{.epoch = settings_.epoch,
                              .of = address(),
                              .capacity = gib(1),
                              .room = room_,
                              .spill_dir = "",
                              .host_ram_budget = gib(1),
                              .host_file_budget = Bytes{0},
                              .memory_wait = settings_.memory_wait};
  reply(welcome);
}

void FakeCoordinator::on_register() {
  if (!settings_.refuses_register.empty()) {
    const wire::Refused refused{.reason = settings_.refuses_register};
    reply(refused);
    connection_.reset();
    return;
  }
  if (!settings_.registers) return;
  Result<ipc::SharedMemory> memory =
      ipc::SharedMemory::create("fake-page", Bytes{static_cast<std::int64_t>(wire::kPageBytes)});
  ASSERT_TRUE(memory.has_value()) << memory.error().to_string();
  auto* page = new (memory->data()) wire::LeasePage{};
  wire::initialise(*page, settings_.epoch, {.job = kJob});
  if (held_ != Term{}) {
    page->word.store(wire::LeaseWord(held_, wire::LeaseState::kOpenBusy, false).bits());
  }
  bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const wire::Registered registered{.of = address(), .note = {}};
  reply(registered, {memory->fd(), bell_.get()});
  pages_.push_back(std::move(*memory));
}

void FakeCoordinator::send(const wire::CoordinatorMessage& message, const std::vector<int>& fds) {
  const std::scoped_lock lock(mutex_);
  EXPECT_TRUE(ipc::send_packet(connection_.get(), wire::encode(message), fds).ok());
}

std::uint64_t FakeCoordinator::grant_room(Bytes more, std::uint64_t need_n) {
  wire::Grant grant;
  {
    const std::scoped_lock lock(mutex_);
    room_ += more;
    grant = wire::Grant{.of = address(), .n = next_n_++, .need_n = need_n, .room = room_};
  }
  send(grant);
  return grant.n;
}

wire::Released FakeCoordinator::revoke(Bytes bytes, Bytes most_spilled) {
  wire::Revoke revoke;
  {
    const std::scoped_lock lock(mutex_);
    revoke = wire::Revoke{.of = address(),
                          .n = next_n_++,
                          .bytes = bytes,
                          .most_ram = most_spilled,
                          .most_file = Bytes{0}};
  }
  send(revoke);
  const auto released = wait_for<wire::Released>();
  EXPECT_EQ(released.n, revoke.n);
  return released;
}

Bytes FakeCoordinator::room() {
  const std::scoped_lock lock(mutex_);
  return room_;
}

wire::LeasePage& FakeCoordinator::page() {
  const std::scoped_lock lock(mutex_);
  static wire::LeasePage none{};
  if (!pages_.empty()) return *static_cast<wire::LeasePage*>(pages_.back().data());
  ADD_FAILURE() << "the job has not registered";
  return none;
}

void FakeCoordinator::wait_state(wire::LeaseState state) {
  const wire::LeasePage& page = this->page();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (wire::load(page).state() != state) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the word is " << wire::name_of(wire::load(page).state()) << ", not "
                    << wire::name_of(state);
      return;
    }
    std::this_thread::yield();
  }
}

Term FakeCoordinator::grant_lease(std::uint64_t grant_n) {
  wire::LeasePage& page = this->page();
  term_ = Term{std::max(term_, wire::load(page).term()).value + 1};
  page.grant_n.store(grant_n, std::memory_order_relaxed);
  page.granted_ns.store(monotonic_now().value(), std::memory_order_relaxed);
  EXPECT_TRUE(wire::grant(page, term_));
  ipc::futex_wake(ipc::low_half(page.word), INT_MAX);
  return term_;
}

wire::AskResult FakeCoordinator::ask() {
  const Term term = wire::load(page()).term();
  const wire::AskResult result = wire::ask(page(), term);
  if (result == wire::AskResult::kTakenInGap) send(wire::Close{.of = address(), .term = term});
  return result;
}

void FakeCoordinator::wait_rung() {
  const auto patience = static_cast<std::int64_t>(kPatience.count());
  const Result<bool> is_ringing = ipc::wait_readable(bell_.get(), seconds(patience));
  EXPECT_TRUE(is_ringing.has_value() && *is_ringing) << "the job has not rung";
  EXPECT_TRUE(has_rung());
}

bool FakeCoordinator::has_rung() {
  std::uint64_t count = 0;
  return ::read(bell_.get(), &count, sizeof(count)) > 0;
}

void FakeCoordinator::drop_connection() {
  const std::scoped_lock lock(mutex_);
  ::shutdown(connection_.get(), SHUT_RDWR);
}

}  // namespace gpushare::client
