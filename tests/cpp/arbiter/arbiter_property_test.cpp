// Programs of several ranks on several hosts at random: messages that are late, connections that
// break, coordinators and the arbiter that are killed and start again. No two rows share a device,
// the ranks of a row have one end, and all programs end.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/arbiter/arbiter.h"
#include "csrc/arbiter/codec.h"
#include "csrc/arbiter/host_side.h"

namespace gpushare::arbiter {
namespace {

constexpr std::size_t kHosts = 3;

// A rank of a program. Its device gives one lease at a time.
struct Process {
  host::RankReport is = {};  // the truth; its job is that at its host's coordinator
  std::uint32_t number = 0;
  std::size_t host = 0;
  std::uint64_t to_do = 40;
  std::uint64_t until = 0;  // its row is open until this step
  bool is_free = false;
  bool is_gone = false;
};

// One device, its coordinator, and its connection. What is on its way arrives in its order, or is
// lost with the connection.
struct Host {
  HostSide side = {};
  std::uint64_t instance = 1;
  std::uint64_t last_job = 0;
  std::optional<PeerId> peer = {};  // nothing: not connected
  std::deque<std::string> up = {};
  std::deque<std::string> down = {};
};

class World {
 public:
  World() : hosts_(kHosts) {
    start_arbiter();
    const int gangs = *rc::gen::inRange(1, 5);
    for (int gang = 0; gang < gangs; ++gang) {
      const auto ranks = *rc::gen::inRange<std::uint32_t>(2, 4);
      std::size_t host = *rc::gen::inRange<std::size_t>(0, kHosts);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        Process process{.number = rank, .host = host++ % kHosts};
        process.is = {.gang = {1, std::to_string(gang)},
                      .job = JobId{++hosts_[process.host].last_job},
                      .ranks = ranks,
                      .wants = true,
                      .iteration = millis(10)};
        processes_.push_back(process);
      }
    }
  }

  void step() {
    Process& process = processes_.at(*rc::gen::inRange<std::size_t>(0, processes_.size()));
    Host& host = hosts_.at(process.host);
    now_ += millis(*rc::gen::inRange(0, 5));
    switch (*rc::gen::inRange(0, 40)) {
      case 0: return cut(host);
      case 1: return restart(process.host);
      case 2: return start_arbiter();
      case 3: return crash(process);
      default: break;
    }
    grant(process);
    go_on(process);
    say(process);
    if (*rc::gen::inRange(0, 2) == 0) connect(host);
    if (*rc::gen::inRange(0, 2) == 0) tell(host);
    if (*rc::gen::inRange(0, 2) == 0) carry(host, 2);
    if (*rc::gen::inRange(0, 2) == 0) run_arbiter();
  }

  // Until nothing is left to do. False: it stands still.
  bool run_out() {
    for (int turn = 0; turn < 20'000; ++turn) {
      if (std::all_of(processes_.begin(), processes_.end(),
                      [](const Process& each) { return each.is_gone; }))
        return true;
      for (Process& process : processes_) {
        grant(process);
        go_on(process);
        say(process);
      }
      for (Host& host : hosts_) {
        connect(host);
        tell(host);
        carry(host, 1000);
      }
      run_arbiter();
      now_ += millis(10);
    }
    return false;
  }

 private:
  void start_arbiter() {
    for (Host& host : hosts_)
      cut(host);
    arbiter_ = std::make_unique<Arbiter>(host::RowOptions{.least_slice = millis(30)}, ++epoch_);
  }
  // Both sides see the end of a connection; what was on its way up may be heard before.
  void cut(Host& host) {
    if (!host.peer.has_value()) return;
    carry(host, static_cast<std::size_t>(*rc::gen::inRange(0, 3)));
    if (host.peer.has_value()) arbiter_->leave(*host.peer, now_);
    disconnect(host);
  }
  static void disconnect(Host& host) {
    host.peer.reset();
    host.up.clear();
    host.down.clear();
  }
  void connect(Host& host) {
    if (host.peer.has_value()) return;
    const auto index = static_cast<std::size_t>(&host - hosts_.data());
    host.peer = PeerId{++last_peer_};
    const auto joined = arbiter_->join(*host.peer,
                                       {.host = std::to_string(index),
                                        .instance = host.instance,
                                        .devices = "cpu",
                                        .seen_epoch = host.side.seen_epoch()},
                                       now_);
    RC_ASSERT(joined.has_value());
    host.side.begin();
    tell(host);
  }
  // The coordinator is killed, and the next one numbers the ranks in another order.
  void restart(std::size_t index) {
    Host& host = hosts_.at(index);
    cut(host);
    host = {.instance = host.instance + 1};
    for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
      if (process->host != index || process->is_gone) continue;
      process->is.job = JobId{++host.last_job};
      // The rank tells the new coordinator what it was told last, and waits there for its row.
      if (!process->is.has_lease) process->until = 0;
      process->is_free = false;
    }
  }
  void say(const Process& process) {
    if (!process.is_gone) hosts_[process.host].side.report(process.is, process.number);
  }
  static void tell(Host& host) {
    if (!host.peer.has_value()) return;
    for (const HostMessage& message : host.side.take_changes())
      host.up.push_back(encode(message));
  }
  void carry(Host& host, std::size_t most) {
    for (std::size_t i = 0; i < most && host.peer.has_value() && !host.up.empty(); ++i) {
      const auto message = decode_from_host(host.up.front());
      host.up.pop_front();
      RC_ASSERT(message.has_value());
      RC_ASSERT(arbiter_->hear(*host.peer, *message, now_).ok());
    }
    for (std::size_t i = 0; i < most && !host.down.empty(); ++i) {
      const auto message = decode_from_arbiter(host.down.front());
      host.down.pop_front();
      RC_ASSERT(message.has_value());
      take(host, *message);
    }
  }
  void take(Host& host, const ArbiterMessage& message) {
    if (const auto* look = std::get_if<Look>(&message)) {
      for (const Process& process : processes_)
        if (&hosts_[process.host] == &host) say(process);
      tell(host);
      host.up.push_back(encode(Looked{look->round}));
    } else if (const auto* order = std::get_if<Order>(&message)) {
      const auto taken = host.side.take(*order);
      if (!taken.has_value()) return;
      for (Process& process : processes_) {
        if (&hosts_[process.host] != &host || process.is.job != taken->job) continue;
        process.is_free = taken->is_free;
        process.until = taken->is_open ? taken->stop_at : 0;
        if (!taken->is_free) process.is.stop_at = taken->stop_at;
      }
    }
  }
  void run_arbiter() {
    const Ready ready = arbiter_->step(now_);
    arbiter_->check_invariants();
    for (const auto& [peer, message] : ready.messages)
      for (Host& host : hosts_)
        if (host.peer == peer) host.down.push_back(encode(message));
    for (const auto& [peer, why] : ready.close)
      for (Host& host : hosts_)
        if (host.peer == peer) disconnect(host);
  }
  void grant(Process& process) {
    if (process.is_gone || !process.is.wants) return;
    for (const Process& other : processes_)
      if (!other.is_gone && other.is.has_lease && other.host == process.host) return;
    if (!process.is_free && process.is.steps >= process.until) return;
    process.is.wants = false;
    process.is.has_lease = true;
  }
  // All that live of its gang are inside the step: they end it.
  void go_on(Process& process) {
    if (process.is_gone || !process.is.has_lease) return;
    for (const Process& each : processes_) {
      if (each.is.gang != process.is.gang) continue;
      if (each.is_gone && each.is.steps < each.to_do) return end(process);  // its collective fails
      if (each.is_gone) continue;
      if (each.is.steps < process.is.steps ||
          (each.is.steps == process.is.steps && !each.is.has_lease))
        return;
    }
    ++process.is.steps;
    if (process.is.steps >= process.to_do) return end(process);
    // A rank compares the step that it was told last, whoever told it.
    if (process.is_free || process.is.steps < process.is.stop_at) return;
    process.is.has_lease = false;
    process.is.wants = true;
  }
  void crash(Process& process) {
    if (*rc::gen::inRange(0, 5) == 0) end(process);
  }
  void end(Process& process) {
    if (process.is_gone) return;
    process.is_gone = true;
    hosts_[process.host].side.forget(process.is.job);
  }

  Nanos now_ = seconds(1);
  std::vector<Host> hosts_;
  std::vector<Process> processes_;
  std::unique_ptr<Arbiter> arbiter_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_peer_ = 0;
};

RC_GTEST_PROP(ArbiterProperty, NoTwoRowsOnADeviceAndNobodyWaitsForEver, ()) {
  World world;
  const int steps = *rc::gen::inRange(0, 300);
  for (int i = 0; i < steps; ++i)
    world.step();
  RC_ASSERT(world.run_out());
}

}  // namespace
}  // namespace gpushare::arbiter
