// The coordinator's connection to the arbiter: makes it, makes it again when it is lost, and passes
// reports of ranks up and orders down.
//
//   kWaiting --pause over--> kConnecting --Challenge--> kProving --Welcome--> kHere
//   any of them --lost, refused or silent--> kWaiting, twice as long as before
//
// While the arbiter is away nothing is lost: the coordinator reports all of its ranks again on the
// next connection. It reports none before the arbiter has proved that it knows the token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/arbiter/handshake.h"
#include "csrc/arbiter/host_side.h"
#include "csrc/arbiter/seal.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/arbiter/look_up.h"
#include "csrc/daemon/config/options.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/stream.h"

namespace gpushare::daemon {

class ArbiterLink {
 public:
  struct Callbacks {
    // The arbiter is about to decide: report each rank as it stands now.
    std::function<void()> on_look;
    std::function<void(std::vector<host::RankOrder>)> on_orders;
    // The connection was made or lost, or is lost for another reason than before.
    std::function<void()> on_changed;
  };

  // `instance` differs from that of the coordinator before. pre: options.arbiter is an address.
  // `options` and `loop` must outlive it.
  // `devices`: a list with commas, in the order of the numbers by which ranks and single jobs name
  // them.
  ArbiterLink(const DaemonOptions& options,
              std::string devices,
              std::uint64_t instance,
              ipc::EventLoop& loop,
              Callbacks callbacks);
  ArbiterLink(const ArbiterLink&) = delete;
  ArbiterLink& operator=(const ArbiterLink&) = delete;

  // Begins to connect.
  void begin();
  // Takes reports of ranks and single jobs. tell() sends them, and so does each answer to the
  // arbiter.
  arbiter::HostSide& side() { return side_; }
  // Sends what has changed, if the arbiter should know that now.
  void tell();

  [[nodiscard]] bool is_here() const { return stage_ == Stage::kHere; }
  // "the arbiter at tcp:... does not answer (...)"; empty if it is here.
  [[nodiscard]] std::string trouble() const;

 private:
  enum class Stage : std::uint8_t { kWaiting, kConnecting, kProving, kHere };

  void connect();
  void connect_to(const Result<ipc::StreamAddress>& address);
  Status open(const ipc::StreamAddress& address);
  void on_readable();
  Status handle(const std::string& frame, std::vector<host::RankOrder>& orders);
  Status handle_here(const arbiter::ArbiterMessage& message, std::vector<host::RankOrder>& orders);
  Status prove(const arbiter::ArbiterMessage& message);
  Status join(const arbiter::ArbiterMessage& message);
  Status send(const arbiter::HostMessage& message);
  Status send_changes();
  void lose(const std::string& why);
  void on_due();

  const DaemonOptions& options_;
  const std::string devices_;
  const std::uint64_t instance_;
  ipc::EventLoop& loop_;
  const Callbacks callbacks_;
  arbiter::HostSide side_;
  Stage stage_ = Stage::kWaiting;
  std::string token_;
  arbiter::Nonces nonces_;
  // They sign both directions while the arbiter is here.
  std::optional<arbiter::Seal> in_;
  std::optional<arbiter::Seal> out_;
  std::optional<ipc::FrameStream> stream_;
  Nanos heard_at_;
  Nanos pause_;
  std::string why_ = "it has not answered yet";  // why it is not here
  LookUp look_up_;
  ipc::EventLoop::Timer timer_;
  ipc::EventLoop::Timer flush_timer_;
  ipc::EventLoop::Watch watch_;  // after stream_, whose socket it watches
};

}  // namespace gpushare::daemon
