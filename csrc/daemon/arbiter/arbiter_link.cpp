// The arbiter speaks first. So a connection that has been made, or has failed, is readable, and the
// loop need not wait for anything else.
//
// What may go wrong: nobody listens, the name is unknown, the token is another one or may be read
// by others, the arbiter hangs, the network is cut. All end in lose(): the connection is closed,
// the reason is kept for `status` and said once, and after a pause it is tried again. A hang is
// found by silence: the arbiter asks once a second at least.
#include "csrc/daemon/arbiter/arbiter_link.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "csrc/arbiter/codec.h"
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/printable.h"
#include "csrc/base/sha256.h"
#include "csrc/daemon/arbiter/secrets.h"
#include "csrc/daemon/files/account.h"

namespace gpushare::daemon {
namespace {

using arbiter::ArbiterMessage;

// The pause before the first new attempt to connect, and the longest one. It doubles in between.
constexpr Nanos kFirstPause = millis(100);
constexpr Nanos kLongestPause = seconds(2);
// The arbiter is given up when it has said nothing for so long.
constexpr Nanos kSilent = seconds(5);
// An arbiter that leaves more bytes unread than this is given up.
constexpr std::size_t kMostUnsent = std::size_t{4} << 20;
// How soon the bytes are sent again that the socket did not take.
constexpr Nanos kFlush = millis(5);

}  // namespace

ArbiterLink::ArbiterLink(const DaemonOptions& options,
                         std::string devices,
                         std::uint64_t instance,
                         ipc::EventLoop& loop,
                         Callbacks callbacks)
    : options_(options),
      devices_(std::move(devices)),
      instance_(instance),
      loop_(loop),
      callbacks_(std::move(callbacks)),
      pause_(kFirstPause),
      look_up_(loop),
      timer_(loop.make_timer([this] { on_due(); })),
      flush_timer_(loop.make_timer([this] {
        const Status status = stream_ ? stream_->flush() : Status();
        if (!status.ok()) return lose(status.message());
        if (stream_ && stream_->is_waiting()) flush_timer_.set_at(monotonic_now() + kFlush);
      })) {}

void ArbiterLink::begin() { connect(); }

// The token is read anew each time, so that a wrong one can be replaced without a restart.
void ArbiterLink::connect() {
  stage_ = Stage::kConnecting;
  heard_at_ = monotonic_now();
  auto token = read_token(options_.token_file);
  if (!token) return lose(token.error().message());
  token_ = *std::move(token);
  const auto address = ipc::parse_stream_address(options_.arbiter);
  if (!address) return lose(address.error().message());
  look_up_.begin(*address, [this](const auto& found) { connect_to(found); });
}

// The connection may not be made yet. If it never is, the silence ends it (on_due()).
void ArbiterLink::connect_to(const Result<ipc::StreamAddress>& address) {
  const Status status = address ? open(*address) : address.error();
  if (!status.ok()) return lose(status.message());
  timer_.set_at(heard_at_ + kSilent);
}

Status ArbiterLink::open(const ipc::StreamAddress& address) {
  auto socket = ipc::connect_stream(address);
  if (!socket) return socket.error();
  stream_.emplace(*std::move(socket), kMostUnsent);
  auto watch = loop_.watch(stream_->socket(), [this] { on_readable(); });
  if (!watch) return watch.error();
  watch_ = *std::move(watch);
  return {};
}

// What came before the end of the connection still counts: it may have been sent just before the
// arbiter died. Orders of one turn are carried out together.
void ArbiterLink::on_readable() {
  std::vector<std::string> frames;
  Status status = stream_->receive(arbiter::kMaxFrameBytes, frames);
  heard_at_ = monotonic_now();
  const bool was_here = is_here();
  std::vector<host::RankOrder> orders;
  for (const std::string& frame : frames) {
    const Status handled = handle(frame, orders);
    if (handled.ok()) continue;
    status = handled;
    break;
  }
  if (!orders.empty()) callbacks_.on_orders(std::move(orders));
  if (!status.ok()) return lose(status.message());
  if (!was_here && is_here()) callbacks_.on_changed();
}

// Once both sides have proved who they are, each frame carries a seal. One that was changed,
// repeated or left out on the way ends the connection here. A refusal may come at any stage.
Status ArbiterLink::handle(const std::string& frame, std::vector<host::RankOrder>& orders) {
  const Result<std::string> text = in_ ? in_->open(frame) : frame;
  if (!text) return text.error();
  const auto message = arbiter::decode_from_arbiter(*text);
  if (!message) return message.error();
  if (const auto* refused = std::get_if<arbiter::Refused>(&*message))
    return {StatusCode::kFailedPrecondition, "it refuses this host: " + refused->reason};
  switch (stage_) {
    case Stage::kConnecting: return prove(*message);
    case Stage::kProving: return join(*message);
    default: return handle_here(*message, orders);
  }
}

// The version comes first: of another one not even the proof can be understood.
Status ArbiterLink::prove(const ArbiterMessage& message) {
  const auto* challenge = std::get_if<arbiter::Challenge>(&message);
  if (challenge == nullptr) return {StatusCode::kProtocol, "it is no arbiter"};
  if (challenge->protocol != arbiter::kProtocolVersion) {
    return {StatusCode::kProtocol,
            fmt::format("it speaks version {} of the arbiter's protocol, and this side {}",
                        challenge->protocol, arbiter::kProtocolVersion)};
  }
  auto nonce = make_nonce();
  if (!nonce) return nonce.error();
  nonces_ = {.arbiter = challenge->nonce, .host = *std::move(nonce)};
  stage_ = Stage::kProving;
  return send(
      arbiter::Proof{.nonce = nonces_.host, .proof = arbiter::proof_of_host(token_, nonces_)});
}

// The arbiter proves that it has the token before it is told anything, since names of users and
// jobs are nobody else's business. Then it gets all there is: it may know nothing of this host.
Status ArbiterLink::join(const ArbiterMessage& message) {
  const auto* welcome = std::get_if<arbiter::Welcome>(&message);
  if (welcome == nullptr) return {StatusCode::kProtocol, "it proves nothing"};
  if (!is_equal_in_constant_time(welcome->proof, arbiter::proof_of_arbiter(token_, nonces_)))
    return {StatusCode::kFailedPrecondition, "it has another token, so it is told nothing"};
  in_.emplace(token_, nonces_, arbiter::Seal::Side::kArbiter);
  out_.emplace(token_, nonces_, arbiter::Seal::Side::kHost);
  stage_ = Stage::kHere;
  log::info("the arbiter at {} is here", options_.arbiter);
  side_.begin();
  GS_RETURN_IF_ERROR(send(arbiter::Join{.version = daemon_version(),
                                        .host = host_name(),
                                        .place = options_.socket,
                                        .instance = instance_,
                                        .devices = devices_,
                                        .seen_epoch = side_.seen_epoch()}));
  callbacks_.on_look();
  return send_changes();
}

Status ArbiterLink::handle_here(const ArbiterMessage& message,
                                std::vector<host::RankOrder>& orders) {
  pause_ = kFirstPause;  // it has taken the Join
  if (const auto* order = std::get_if<arbiter::Order>(&message)) {
    if (auto taken = side_.take(*order)) orders.push_back(*std::move(taken));
    return {};
  }
  const auto* look = std::get_if<arbiter::Look>(&message);
  if (look == nullptr) return {StatusCode::kProtocol, "a message that it should not send now"};
  // The answer must show the effect of the orders that came before the question.
  if (!orders.empty()) callbacks_.on_orders(std::exchange(orders, {}));
  callbacks_.on_look();
  GS_RETURN_IF_ERROR(send_changes());
  return send(arbiter::Looked{look->round});
}

// What the socket does not take at once is sent by the timer.
Status ArbiterLink::send(const arbiter::HostMessage& message) {
  const std::string text = arbiter::encode(message);
  const Status status = stream_->send(out_ ? out_->close(text) : text);
  if (status.ok() && stream_->is_waiting()) flush_timer_.set_at(monotonic_now() + kFlush);
  return status;
}

Status ArbiterLink::send_changes() {
  for (const arbiter::HostMessage& change : side_.take_changes())
    GS_RETURN_IF_ERROR(send(change));
  return {};
}

// Steps and times alone are no news: the arbiter asks for them when it decides.
void ArbiterLink::tell() {
  if (!is_here() || !side_.has_news()) return;
  const Status status = send_changes();
  if (!status.ok()) lose(status.message());
}

// Each reason is logged once, however often the same one follows.
void ArbiterLink::lose(const std::string& why) {
  const bool was_here = is_here();
  const bool is_new = was_here || printable(why) != why_;
  why_ = printable(why);
  stage_ = Stage::kWaiting;
  if (is_new) log::warn("{}: gangs wait, and single jobs go on", trouble());
  watch_.reset();
  stream_.reset();
  in_.reset();
  out_.reset();
  timer_.set_at(monotonic_now() + pause_);
  pause_ = std::min(pause_ * 2, kLongestPause);
  if (is_new) callbacks_.on_changed();
}

// The pause is over, or the arbiter may have said nothing for long.
void ArbiterLink::on_due() {
  if (stage_ == Stage::kWaiting) return connect();
  const Nanos due = heard_at_ + kSilent;
  if (monotonic_now() < due) return timer_.set_at(due);
  lose("it says nothing");
}

std::string ArbiterLink::trouble() const {
  if (is_here()) return {};
  return fmt::format("the arbiter at {} does not answer ({})", options_.arbiter, why_);
}

}  // namespace gpushare::daemon
