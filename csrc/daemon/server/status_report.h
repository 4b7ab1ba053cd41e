// The JSON behind `gpushare status --json`: what the coordinator knows, with fresh figures off the
// jobs' pages.
//
// "schema_version" rises when a name changes its meaning or goes; new names may come at any time.
// Each number has its unit in its name. Built only when somebody asks; never on a hand-over's path.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/daemon/jobs/job_table.h"
#include "csrc/daemon/jobs/registration.h"
#include "csrc/daemon/machine/neighbours.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/ready.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {

inline constexpr int kStatusSchemaVersion = 1;

// Off a job's page, now.
struct PageFacts {
  wire::Usage usage;
  Registration::Totals totals;
  double iterations_per_second = 0;  // since it registered, of all time
  bool is_held_back = false;         // by the transfer budget
};

struct StatusFacts {
  sched::Snapshot snapshot;
  Nanos now;
  Nanos started;
  std::int32_t pid = 0;
  std::string socket;
  std::vector<sched::Decision> decisions;  // oldest first
  Neighbours neighbours;
  std::vector<std::string> warnings;  // of the process; the coordinator's are in the snapshot
  std::map<JobId, PageFacts> pages;
  // What jobs had moved that have no page, because they have closed their part.
  std::map<JobId, Registration::Totals> last_totals;
  std::optional<sched::Why> why;           // of the job that was asked for
  std::map<JobId, std::string> explained;  // of those that wait, for a lease or for room
};

// Fills `pages` and `last_totals`. pre: facts.now.
void add_page_facts(const JobTable& jobs, StatusFacts& facts);
// `jobs_left_out`: how many jobs are missing in `facts` for want of space; said if it is not 0.
std::string status_text(const StatusFacts& facts, std::uint64_t jobs_left_out = 0);
// The same, as one message can carry it: where it is too long, the oldest decisions, then the
// neighbours, then command lines are left out, and at last jobs from the end ("jobs_left_out").
std::string bounded_status_text(StatusFacts facts);

}  // namespace gpushare::daemon
