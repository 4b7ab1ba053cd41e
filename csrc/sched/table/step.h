// One step of the state machine: the table, the time, and what the caller must do.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/ready.h"
#include "csrc/sched/table/table.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::sched {

class Step {
 public:
  // `table` must outlive it. The coordinator begins each of its steps by begin_step(), which also
  // charges the time since the step before.
  Step(Table& table, Nanos now, bool is_deadline);

  [[nodiscard]] Table& table() { return table_; }
  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] Device& device() { return table_.device; }
  [[nodiscard]] const Device& device() const { return table_.device; }
  [[nodiscard]] Nanos now() const { return now_; }
  [[nodiscard]] bool is_deadline() const { return is_deadline_; }

  void send(JobId to, wire::CoordinatorMessage message);
  void refuse(JobId to, std::string reason);
  void act(PageAction action);
  // What becomes of the memory of a user's pool (LaneAction): these slots are emptied, only these
  // are kept, or all of it is gone.
  void empty_slots(std::uint32_t uid, std::vector<std::uint32_t> slots);
  void keep_slots(std::uint32_t uid, std::set<std::uint32_t> slots);
  void end_pool(std::uint32_t uid);
  // Records why; `job` may be 0.
  void decide(JobId job, std::string what, std::string reason);
  // Records why a job waits, unless `last` says so already.
  void wait(JobId job, std::string& last, std::string reason);
  // on_deadline is due at `time`, or before.
  void due(Nanos time);
  // The jobs with which some job shares have changed (Ready::is_sharing_new).
  void note_new_sharing() { ready_.is_sharing_new = true; }
  // The job's page is to be looked at before the next on_deadline.
  void look_at(JobId job);

  [[nodiscard]] Ready take() { return std::move(ready_); }

 private:
  Table& table_;
  Nanos now_;
  bool is_deadline_;
  Ready ready_;
};

}  // namespace gpushare::sched
