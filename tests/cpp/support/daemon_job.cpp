#include "tests/cpp/support/daemon_job.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/base/clock.h"
#include "csrc/ipc/futex.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"

namespace gpushare::testing {
namespace {

constexpr Nanos kLongest = seconds(20);
constexpr std::size_t kLongestWord = 100;

// The next word; "" if none came in time or the other end is gone.
std::string hear(int fd) {
  const auto is_readable = ipc::wait_readable(fd, kLongest);
  if (!is_readable || !*is_readable) return "";
  const auto packet = ipc::receive_packet(fd, kLongestWord);
  return packet ? packet->bytes : "";
}

}  // namespace

void JobSide::give_up(const std::string& why) {
  std::fprintf(stderr, "job process %d: %s\n", ::getpid(), why.c_str());
  ::_exit(3);
}

void JobSide::tell(const std::string& word) {
  const Status status = ipc::send_packet(test_.get(), word);
  if (!status.ok()) give_up("the test is gone: " + status.message());
}

void JobSide::wait_for(const std::string& word) {
  const std::string heard = hear(test_.get());
  if (heard != word) give_up("waited for " + word + ", heard \"" + heard + "\"");
}

void JobSide::connect(const std::string& socket) {
  auto connected = ipc::connect_to(socket);
  if (!connected) give_up(connected.error().message());
  socket_ = std::move(*connected);
}

wire::Welcome JobSide::hello(Bytes resident, Term held_term, const std::string& device) {
  wire::Hello hello;
  hello.version = "test";
  hello.of.device = device;
  hello.command = "job of a test";
  hello.resident = resident;
  hello.held_term = held_term;
  send(hello);
  auto welcome = receive<wire::Welcome>();
  address_ = welcome.of;
  return welcome;
}

void JobSide::register_job(const std::string& name, std::uint64_t fingerprint) {
  wire::Register wish;
  wish.of = address_;
  wish.name = name;
  wish.fingerprint = fingerprint;
  register_as(wish);
}

void JobSide::register_rank(const std::string& gang, std::uint32_t rank, std::uint32_t ranks) {
  wire::Register wish;
  wish.of = address_;
  wish.of.gang = gang;
  wish.of.rank = rank;
  wish.of.ranks = ranks;
  wish.stop_at = 0;
  register_as(wish);
}

void JobSide::register_as(const wire::Register& wish) {
  send(wish);
  const auto is_readable = ipc::wait_readable(socket_.get(), kLongest);
  if (!is_readable || !*is_readable) give_up("no answer to register");
  auto packet = ipc::receive_packet(socket_.get(), wire::kMaxMessageBytes);
  if (!packet || packet->fds.size() != 2) give_up("no page: " + (packet ? packet->bytes : "error"));
  auto memory = ipc::SharedMemory::attach(std::move(packet->fds[0]), Bytes{wire::kPageBytes});
  if (!memory) give_up(memory.error().message());
  memory_ = std::move(*memory);
  event_ = std::move(packet->fds[1]);
  if (!wire::is_valid(page())) give_up("a bad page");
}

void JobSide::attach(const std::string& socket, const std::string& name) {
  connect(socket);
  hello(Bytes{0}, Term{0});
  register_job(name);
}

void JobSide::send(const wire::JobMessage& message) {
  const Status status = ipc::send_packet(socket_.get(), wire::encode(message));
  if (!status.ok()) give_up("send: " + status.message());
}

void JobSide::send_until_closed(const wire::JobMessage& message) {
  const std::string bytes = wire::encode(message);
  const Nanos deadline = monotonic_now() + kLongest;
  while (monotonic_now() < deadline) {
    const Status status = ipc::send_packet(socket_.get(), bytes);
    if (status.code() == StatusCode::kUnavailable) return;
    // Our own buffer is full: the daemon is not yet that far.
    if (!status.ok() && status.code() != StatusCode::kDeadlineExceeded) give_up(status.message());
  }
  give_up("never closed");
}

wire::CoordinatorMessage JobSide::receive_any() {
  const auto is_readable = ipc::wait_readable(socket_.get(), kLongest);
  if (!is_readable || !*is_readable) give_up("no message");
  const auto packet = ipc::receive_packet(socket_.get(), wire::kMaxMessageBytes);
  if (!packet) give_up(packet.error().message());
  if (packet->is_end) return wire::Refused{"closed"};
  auto message = wire::decode_from_coordinator(packet->bytes);
  if (!message) give_up(message.error().message());
  return *message;
}

void JobSide::kick() {
  const std::uint64_t one = 1;
  if (::write(event_.get(), &one, sizeof(one)) != sizeof(one)) give_up("eventfd");
}

void JobSide::want() {
  if (!wire::want(page())) give_up("the word is not kIdle");
  kick();
}

Term JobSide::wait_granted() {
  const Nanos deadline = monotonic_now() + kLongest;
  while (true) {
    const wire::LeaseWord word = wire::load(page());
    if (word.is_open()) return word.term();
    if (monotonic_now() > deadline) give_up("no grant");
    ipc::futex_wait(ipc::low_half(page().word), word.low(), millis(100));
  }
}

void JobSide::close_lease() {
  if (wire::try_end(page()) == wire::EndResult::kKept && !wire::start_close(page())) {
    give_up("the lease was not open");
  }
  wire::finish_close(page());
  kick();
}

JobProcess::JobProcess(const std::function<void(JobSide&)>& body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  child_.reset(ends[0]);
  UniqueFd test(ends[1]);
  pid_ = ::fork();
  if (pid_ != 0) return;
  child_.reset();
  {
    JobSide side(std::move(test));
    body(side);
  }
  ::_exit(0);  // not exit(): the test's own handlers are not this process'
}

JobProcess::~JobProcess() {
  if (pid_ <= 0) return;
  kill();
  wait();
}

void JobProcess::tell(const std::string& word) {
  const Status status = ipc::send_packet(child_.get(), word);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

void JobProcess::expect(const std::string& word) { EXPECT_EQ(hear(child_.get()), word); }

void JobProcess::kill() { ::kill(pid_, SIGKILL); }

int JobProcess::wait() {
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace gpushare::testing
