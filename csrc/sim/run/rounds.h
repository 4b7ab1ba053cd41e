// Devices are given in rounds: every `min_quantum`, as long as there are jobs, it is chosen anew
// which of them have which kind of device (max_min.h). A job that is to have none, or another kind,
// leaves before its next iteration, with its memory, and waits. Between two rounds a device that
// becomes idle goes to a job that waits.
//
// Devices with one name and one speed are of one kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "csrc/sim/dispatch/dispatcher.h"
#include "csrc/sim/dispatch/max_min.h"
#include "csrc/sim/run/event_queue.h"
#include "csrc/sim/run/sim_job.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {

class Rounds final : public Dispatcher {
 public:
  // All devices are idle. `scenario`, `events` and `jobs` (each rank is one) must outlive it.
  Rounds(const Scenario& scenario, EventQueue& events, std::vector<SimJob>& jobs);

  void push(std::size_t job, std::size_t num_devices) override;
  void note_idle(std::size_t device) override;
  std::optional<Start> start() override;

  // The next round begins.
  void on_round() override;
  [[nodiscard]] std::uint64_t num_moves() const override { return num_moves_; }

 private:
  struct Placed {
    std::size_t kind = 0;
    std::size_t num_left = 0;  // ranks that are still there
    bool is_leaving = false;
  };

  [[nodiscard]] std::span<SimJob> ranks_of(std::size_t job);
  [[nodiscard]] std::vector<MaxMin::Wish> count_progress();

  const Scenario& scenario_;
  EventQueue& events_;
  std::vector<SimJob>& jobs_;
  std::vector<std::size_t> kinds_;           // of each device
  std::vector<std::set<std::size_t>> idle_;  // devices, of each kind
  MaxMin max_min_;
  std::map<std::size_t, std::size_t> on_;  // the job of each device that has one
  // All below have jobs by the numbers of their first ranks.
  std::set<std::size_t> waiting_;
  std::set<std::size_t> on_their_way_;  // their memory is being copied out
  std::map<std::size_t, Placed> placed_;
  std::map<std::size_t, std::size_t> meant_;  // the kind that a job waits for in this round
  bool has_news_ = false;                     // since start() had nothing to say
  // Whether the next round has an event. It has none while there are no jobs.
  bool is_timed_ = false;
  std::uint64_t num_moves_ = 0;
};

}  // namespace gpushare::sim
