// The arbiter's process at work: accepts the connections of hosts, has each prove that it knows the
// token, feeds csrc/arbiter with their messages, and sends its answers.
//
// All of it runs on the event loop's thread. It keeps nothing on disk: after a restart each host
// reports again the step that its ranks were told last.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "csrc/arbiter/arbiter.h"
#include "csrc/arbiter/handshake.h"
#include "csrc/arbiter/seal.h"
#include "csrc/base/status.h"
#include "csrc/base/token_bucket.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/options.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/stream.h"

namespace gpushare::daemon {

class ArbiterServer {
 public:
  // How many frames one host may send.
  struct Limits {
    double frames_a_second = 20'000;
    // A host that reports all of its ranks sends many frames at once.
    double frames_at_once = 20'000;
  };

  // Listens at options.listen. errors: of read_token(), kIo, kUnavailable (no such name). `loop`
  // must outlive it.
  static Result<std::unique_ptr<ArbiterServer>> create(const DaemonOptions& options,
                                                       ipc::EventLoop& loop,
                                                       const Limits& limits);
  ArbiterServer(const ArbiterServer&) = delete;
  ArbiterServer& operator=(const ArbiterServer&) = delete;
  ~ArbiterServer();

 private:
  enum class Stage : std::uint8_t { kProving, kProved, kJoined };
  struct Peer {
    Peer(UniqueFd socket, const Limits& limits, Nanos now);
    ipc::FrameStream stream;
    std::string name;  // for the log
    Stage stage = Stage::kProving;
    arbiter::Nonces nonces = {};
    // They sign both directions, once the peer has proved that it knows the token.
    std::optional<arbiter::Seal> in = {};
    std::optional<arbiter::Seal> out = {};
    Nanos since;
    TokenBucket frames;
    ipc::EventLoop::Watch watch = {};  // last: ends first
  };

  ArbiterServer(const DaemonOptions& options,
                std::string token,
                ipc::EventLoop& loop,
                const Limits& limits);
  Status listen(const std::string& address);
  void accept();
  void add(UniqueFd socket);
  void on_readable(arbiter::PeerId id);
  Status handle(arbiter::PeerId id, Peer& peer, const std::string& frame);
  Status handle_proof(Peer& peer, const arbiter::HostMessage& message);
  Status handle_join(arbiter::PeerId id, Peer& peer, const arbiter::HostMessage& message);
  void send(arbiter::PeerId id, const arbiter::ArbiterMessage& message);
  void refuse(arbiter::PeerId id, const Status& why);
  void drop(arbiter::PeerId id, const std::string& why);
  void step_soon();
  void step();
  void look_after_peers();

  const std::string token_;
  const Limits limits_;
  std::string path_;  // of a Unix socket, which is removed at the end
  ipc::EventLoop& loop_;
  arbiter::Arbiter arbiter_;
  UniqueFd listener_;
  TokenBucket accepts_;
  std::map<arbiter::PeerId, std::unique_ptr<Peer>> peers_;
  arbiter::PeerId last_peer_;
  bool is_step_due_ = false;
  ipc::EventLoop::Timer step_timer_;
  ipc::EventLoop::Timer peer_timer_;
  ipc::EventLoop::Watch watch_;  // after listener_, which it watches
};

}  // namespace gpushare::daemon
