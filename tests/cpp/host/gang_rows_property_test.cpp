// Rows of gangs under random programs, whose ranks wait for each other in each step, with late
// reports and crashes: no two rows share a device, the ranks of a row have one end, and nobody
// waits for ever.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

struct Process {
  RankReport is;  // the truth
  std::uint64_t to_do = 0;
  bool is_gone = false;
  RankOrder order = {};
};

// The ranks of all programs, and devices that give one lease at a time. A rank ends a step when all
// of its gang that live are inside one: a crash breaks the program, and its other ranks end.
class World {
 public:
  World(const std::string& policy, bool has_single)
      : rows_({.devices = {"0", "1", "2"}, .least_slice = millis(30), .policy = policy}),
        has_single_(has_single) {
    const int gangs = *rc::gen::inRange(1, 5);
    std::uint64_t job = 0;
    for (int gang = 0; gang < gangs; ++gang) {
      const auto ranks = *rc::gen::inRange<std::uint32_t>(2, 4);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        Process process;
        process.is.gang = {1, std::to_string(gang)};
        process.is.job = JobId{++job};
        process.is.wants = true;
        process.is.iteration = millis(10);
        process.is.ranks = ranks;
        process.is.standing.priority = *rc::gen::element(
            wire::Priority::kGuaranteed, wire::Priority::kNormal, wire::Priority::kOpportunistic);
        process.to_do = 40;
        processes_.push_back(process);
      }
      spread(processes_.back().is.gang);
    }
  }

  // One of the things that may happen next.
  void step() {
    Process& process = processes_.at(*rc::gen::inRange<std::size_t>(0, processes_.size()));
    switch (*rc::gen::inRange(0, 8)) {
      case 0: return settle();
      case 1: return grant(process);
      case 2: return say(process);
      case 3: return crash(process);
      default: return go_on(process);
    }
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
      settle();
      now_ += millis(20);
    }
    return false;
  }

 private:
  // Two ranks of one gang on one device would hold one lease together, which this world has not.
  void spread(const GangName& gang) {
    std::size_t device = *rc::gen::inRange<std::size_t>(0, 3);
    for (Process& each : processes_)
      if (each.is.gang == gang) each.is.device = device++ % 3;
  }
  void say(const Process& process) {
    if (!process.is_gone) rows_.report(process.is, now_);
  }
  void settle() {
    for (const Process& process : processes_)
      say(process);
    for (std::size_t device = 0; device < 3; ++device)
      rows_.note_singles(device, single_on(device));
    const RowOrders orders = rows_.settle(now_);
    rows_.check_invariants();
    for (const RankOrder& order : orders.ranks)
      for (Process& process : processes_)
        if (process.is.job == order.job) process.order = order;
    std::map<GangName, std::uint64_t> ends;
    for (const Process& process : processes_) {
      if (process.is_gone || !process.order.is_open) continue;
      const auto [end, is_new] = ends.emplace(process.is.gang, process.order.stop_at);
      RC_ASSERT(end->second == process.order.stop_at);
      RC_ASSERT(rows_.row_on(process.is.device) != nullptr);
      RC_ASSERT(*rows_.row_on(process.is.device) == process.is.gang);
    }
  }
  // A single job that never ends, on the first device: it runs while no row is open there.
  sched::Singles single_on(std::size_t device) {
    if (device > 0 || !has_single_) return {};
    sched::Singles singles{.weights = {{1, 1.0}}, .first = sched::Standing{}};
    singles.has_lease = rows_.row_on(device) == nullptr;
    singles.is_in_line = !singles.has_lease;
    if (singles.has_lease) single_since_ = now_;
    singles.first->waiting_since = single_since_;
    return singles;
  }
  void grant(Process& process) {
    if (process.is_gone || !process.is.wants) return;
    const bool may = process.order.is_free ||
                     (process.order.is_open && process.is.steps < process.order.stop_at);
    for (const Process& other : processes_)
      if (!other.is_gone && other.is.has_lease && other.is.device == process.is.device) return;
    if (!may) return;
    process.is.wants = false;
    process.is.has_lease = true;
    say(process);
  }
  // All that live of its gang are inside the step: they end it.
  void go_on(Process& process) {
    if (process.is_gone || !process.is.has_lease) return;
    std::vector<Process*> gang;
    for (Process& each : processes_) {
      if (each.is.gang != process.is.gang) continue;
      if (each.is_gone) return end(process);  // its collective fails
      if (each.is.steps < process.is.steps ||
          (each.is.steps == process.is.steps && !each.is.has_lease))
        return;
      gang.push_back(&each);
    }
    ++process.is.steps;
    if (process.is.steps >= process.to_do) return end(process);
    if (process.order.is_free || process.is.steps < process.order.stop_at) return;
    process.is.has_lease = false;
    process.is.wants = true;
    say(process);
  }
  void crash(Process& process) {
    if (*rc::gen::inRange(0, 30) == 0) end(process);
  }
  void end(Process& process) {
    if (process.is_gone) return;
    process.is_gone = true;
    rows_.forget(process.is.job);
  }

  GangRows rows_;
  Nanos now_ = seconds(1);
  std::vector<Process> processes_;
  const bool has_single_;
  Nanos single_since_;  // it ran last
};

RC_GTEST_PROP(GangRowsProperty, NoTwoRowsOnADeviceAndNobodyWaitsForEver, ()) {
  const auto policy = *rc::gen::elementOf(sched::policy_names());
  // Policies that go by length or by arrival alone may leave all to a job that never ends.
  const bool shares_time = policy != "fifo" && policy != "srtf" && policy != "deadline";
  World world(policy, shares_time && *rc::gen::arbitrary<bool>());
  const int steps = *rc::gen::inRange(0, 200);
  for (int i = 0; i < steps; ++i)
    world.step();
  RC_ASSERT(world.run_out());
}

}  // namespace
}  // namespace gpushare::host
