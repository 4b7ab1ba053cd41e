// A connection goes through three stages. The arbiter has sent a nonce, and waits for the proof. It
// has the proof, has sent its own, and waits for Join. Then the peer is a host.
//
// What may go wrong: a stranger connects, a host has another token, a peer sends garbage, floods,
// or does not read. Each ends that connection, with one line in the log. Before the proof a peer
// may send little, has little time, and there may be few such peers. So strangers cost the hosts
// nothing but places for new connections.
#include "csrc/daemon/arbiter/arbiter_server.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "csrc/arbiter/codec.h"
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/sha256.h"
#include "csrc/daemon/arbiter/secrets.h"
#include "csrc/daemon/files/account.h"
#include "csrc/ipc/socket.h"

namespace gpushare::daemon {
namespace {

using arbiter::ArbiterMessage;
using arbiter::HostMessage;
using arbiter::PeerId;

// How many connections are accepted in a second.
constexpr double kHostsASecond = 500;
// So many hosts are accepted in one turn of the loop at most. Hosts that are here need not wait for
// long then.
constexpr int kHostsATurn = 32;
// How many peers may be connected that have not joined.
constexpr std::size_t kMostStrangers = 64;
constexpr Nanos kTimeToJoin = seconds(5);
// The most bytes that a host may leave unread.
constexpr std::size_t kMostWaiting = std::size_t{4} << 20;
// How often peers are looked at that owe something: a proof, or room in their buffers.
constexpr Nanos kLookAfter = millis(20);
// How long nobody is accepted after an error, or when connections come too fast.
constexpr Nanos kListenPause = millis(100);

// Higher than that of an arbiter before, as far as the wall clock has not gone back. Hosts say in
// their Join if it has.
std::uint64_t epoch_of_now() { return static_cast<std::uint64_t>(unix_now_ns()); }

}  // namespace

ArbiterServer::Peer::Peer(UniqueFd socket, const Limits& limits, Nanos now)
    : stream(std::move(socket), kMostWaiting),
      name(ipc::peer_text(stream.socket())),
      since(now),
      frames(limits.frames_a_second, limits.frames_at_once) {}

ArbiterServer::ArbiterServer(const DaemonOptions& options,
                             std::string token,
                             ipc::EventLoop& loop,
                             const Limits& limits)
    : token_(std::move(token)),
      limits_(limits),
      loop_(loop),
      arbiter_(row_options(options), epoch_of_now()),
      accepts_(kHostsASecond, kHostsASecond),
      step_timer_(loop.make_timer([this] { step(); })),
      peer_timer_(loop.make_timer([this] { look_after_peers(); })) {}

ArbiterServer::~ArbiterServer() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<std::unique_ptr<ArbiterServer>> ArbiterServer::create(const DaemonOptions& options,
                                                             ipc::EventLoop& loop,
                                                             const Limits& limits) {
  auto token = read_token(options.token_file);
  if (!token) return fail(token.error());
  std::unique_ptr<ArbiterServer> server(
      new ArbiterServer(options, *std::move(token), loop, limits));
  if (Status status = server->listen(options.listen); !status.ok()) return fail(status);
  return server;
}

Status ArbiterServer::listen(const std::string& text) {
  const auto named = ipc::parse_stream_address(text);
  if (!named) return named.error();
  auto address = ipc::look_up(*named);
  if (!address) return address.error();
  auto listener = ipc::listen_stream(*address);
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  path_ = address->path;
  auto watch = loop_.watch(listener_.get(), [this] { accept(); });
  if (!watch) return watch.error();
  watch_ = *std::move(watch);
  const auto port = ipc::port_of(listener_.get());
  if (!port) return port.error();
  if (address->path.empty()) address->port = *port;  // 0 asks for any
  log::info("the arbiter listens at {}, epoch {}", ipc::to_string(*address), arbiter_.epoch());
  return {};
}

// Connections that come faster wait in the kernel's queue. The loop would report them without end,
// so they are looked at again after a pause.
void ArbiterServer::accept() {
  for (int i = 0; i < kHostsATurn; ++i) {
    const bool may = accepts_.take(monotonic_now());
    auto accepted = may ? ipc::accept_from(listener_.get())
                        : fail(StatusCode::kDeadlineExceeded, "connections come too fast");
    if (accepted) {
      add(*std::move(accepted));
      continue;
    }
    if (accepted.error().code() == StatusCode::kUnavailable) return;
    log::warn("{}; trying again in {}", accepted.error().message(), to_string(kListenPause));
    watch_.reset();
    peer_timer_.set_at(monotonic_now() + kListenPause);
    return;
  }
}

// A stranger above the limit is closed before it is sent anything, so it costs one accept. The
// number of a peer is never used again: a callback that comes late finds nobody.
void ArbiterServer::add(UniqueFd socket) {
  const Nanos now = monotonic_now();
  const auto num_strangers =
      static_cast<std::size_t>(std::count_if(peers_.begin(), peers_.end(), [](const auto& each) {
        return each.second->stage != Stage::kJoined;
      }));
  auto peer = std::make_unique<Peer>(std::move(socket), limits_, now);
  if (num_strangers >= kMostStrangers) {
    log::warn("{}: {} others have not joined yet; closed", peer->name, num_strangers);
    return;
  }
  auto nonce = make_nonce();
  if (!nonce) return log::error("{}", nonce.error().message());
  peer->nonces.arbiter = *std::move(nonce);
  last_peer_ = PeerId{last_peer_.value + 1};
  const PeerId id = last_peer_;
  auto watch = loop_.watch(peer->stream.socket(), [this, id] { on_readable(id); });
  if (!watch) return log::error("{}: {}", peer->name, watch.error().message());
  peer->watch = *std::move(watch);
  const std::string challenge = peer->nonces.arbiter;
  peers_.emplace(id, std::move(peer));
  send(id, arbiter::Challenge{.nonce = challenge});
  peer_timer_.set_at(now + kLookAfter);
}

// Frames that came before the end of a connection still count.
void ArbiterServer::on_readable(PeerId id) {
  Peer& peer = *peers_.at(id);
  std::vector<std::string> frames;
  const std::size_t most =
      peer.stage == Stage::kProving ? arbiter::kMaxFirstFrameBytes : arbiter::kMaxFrameBytes;
  const Status end = peer.stream.receive(most, frames);
  const Nanos now = monotonic_now();
  for (const std::string& frame : frames) {
    const Status status =
        peer.frames.take(now)
            ? handle(id, peer, frame)
            : Status(StatusCode::kProtocol, "more messages a second than a host has use for");
    if (!status.ok()) return refuse(id, status);
    if (!peers_.contains(id)) return;  // handle() could not send to it
  }
  if (!end.ok()) drop(id, end.message());
  step_soon();
}

// The seal of what comes in begins with the message after the proof. Welcome itself goes out
// without one, because it brings what the host checks first; all that follows has one.
Status ArbiterServer::handle(PeerId id, Peer& peer, const std::string& frame) {
  const Result<std::string> text = peer.in ? peer.in->open(frame) : frame;
  if (!text) return text.error();
  const auto message = arbiter::decode_from_host(*text);
  if (!message) return message.error();
  if (peer.stage == Stage::kProving) {
    GS_RETURN_IF_ERROR(handle_proof(peer, *message));
    const arbiter::Nonces nonces = peer.nonces;
    peer.in.emplace(token_, nonces, arbiter::Seal::Side::kHost);
    send(id, arbiter::Welcome{arbiter::proof_of_arbiter(token_, nonces)});
    if (peers_.contains(id)) peer.out.emplace(token_, nonces, arbiter::Seal::Side::kArbiter);
    return {};
  }
  if (peer.stage == Stage::kProved) return handle_join(id, peer, *message);
  return arbiter_.hear(id, *message, monotonic_now());
}

// The versions are compared before the proof, which another version may make in another way.
Status ArbiterServer::handle_proof(Peer& peer, const HostMessage& message) {
  const auto* proof = std::get_if<arbiter::Proof>(&message);
  if (proof == nullptr) return {StatusCode::kProtocol, "it proves nothing"};
  if (proof->protocol != arbiter::kProtocolVersion) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("it speaks version {} of the arbiter's protocol, and this arbiter {}: "
                        "install one gpushare everywhere",
                        proof->protocol, arbiter::kProtocolVersion)};
  }
  peer.nonces.host = proof->nonce;
  if (!is_equal_in_constant_time(proof->proof, arbiter::proof_of_host(token_, peer.nonces)))
    return {StatusCode::kFailedPrecondition, "it has another token"};
  peer.stage = Stage::kProved;
  return {};
}

Status ArbiterServer::handle_join(PeerId id, Peer& peer, const HostMessage& message) {
  const auto* join = std::get_if<arbiter::Join>(&message);
  if (join == nullptr) return {StatusCode::kProtocol, "a message before it has joined"};
  auto name = arbiter_.join(id, *join, monotonic_now());
  if (!name) return name.error();
  log::info("{} joins from {}: {}, version {}", *name, peer.name, join->devices, join->version);
  peer.name = *std::move(name);
  peer.stage = Stage::kJoined;
  return {};
}

void ArbiterServer::send(PeerId id, const ArbiterMessage& message) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  const std::string text = arbiter::encode(message);
  const Status status = peer.stream.send(peer.out ? peer.out->close(text) : text);
  if (!status.ok()) return drop(id, status.message());
  if (peer.stream.is_waiting()) peer_timer_.set_at(monotonic_now() + kLookAfter);
}

// A peer of another version, or with another token, is told what is wrong, so that it can tell its
// user.
void ArbiterServer::refuse(PeerId id, const Status& why) {
  if (why.code() == StatusCode::kFailedPrecondition) send(id, arbiter::Refused{why.message()});
  drop(id, why.message());
}

// A send that fails has dropped the peer already. So a second call may find nobody.
void ArbiterServer::drop(PeerId id, const std::string& why) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  log::warn("{}: {}; its connection is closed", found->second->name, why);
  peers_.erase(found);
  arbiter_.leave(id, monotonic_now());
  step_soon();
}

// Many peers may speak in one turn of the loop. They are answered by one step.
void ArbiterServer::step_soon() {
  if (!std::exchange(is_step_due_, true)) loop_.post([this] { step(); });
}

void ArbiterServer::step() {
  is_step_due_ = false;
  const arbiter::Ready ready = arbiter_.step(monotonic_now());
  for (const std::string& said : ready.said)
    log::debug("{}", said);
  for (const auto& [id, message] : ready.messages)
    send(id, message);
  for (const auto& [id, why] : ready.close)
    drop(id, why);
  if (ready.look_at.has_value()) {
    step_timer_.set_at(*ready.look_at);
  } else {
    step_timer_.cancel();
  }
}

// Closes strangers that take too long, sends what waits, and accepts again after a pause.
void ArbiterServer::look_after_peers() {
  const Nanos now = monotonic_now();
  bool is_due_again = false;
  std::vector<std::pair<PeerId, std::string>> ended;
  for (auto& [id, peer] : peers_) {
    const bool is_stranger = peer->stage != Stage::kJoined;
    const Status status = peer->stream.flush();
    if (!status.ok()) {
      ended.emplace_back(id, status.message());
    } else if (is_stranger && now >= peer->since + kTimeToJoin) {
      ended.emplace_back(id, "it has not joined in time");
    } else {
      is_due_again = is_due_again || is_stranger || peer->stream.is_waiting();
    }
  }
  for (const auto& [id, why] : ended)
    drop(id, why);
  if (!watch_.is_active()) {
    auto watch = loop_.watch(listener_.get(), [this] { accept(); });
    if (watch) watch_ = *std::move(watch);
    if (!watch) log::error("accept again: {}", watch.error().message());
    is_due_again = is_due_again || !watch;
  }
  if (is_due_again) peer_timer_.set_at(now + kLookAfter);
}

}  // namespace gpushare::daemon
