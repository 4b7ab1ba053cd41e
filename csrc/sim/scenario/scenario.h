// The data of a simulation (jobs, devices, costs), and the reader of one of its two forms, the
// scenario's text. simulator.h has the format. trace.h reads the other form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sim/scenario/models.h"
#include "csrc/sim/scenario/speeds.h"
#include "csrc/wire/priority.h"

namespace gpushare::sim {

// Policies of the simulator's own beside the coordinator's: jobs do not share.
inline constexpr const char* kExclusive = "exclusive";
// And the same with rounds: which jobs have devices, and of which kind, is chosen anew each time
// (dispatch/max_min.h).
inline constexpr const char* kMaxMin = "maxmin";

inline constexpr std::uint64_t kMostDevices = 1'000'000;
// Later than any simulation ends.
inline constexpr Nanos kLatestTime = seconds(1'000'000'000);

struct JobSpec {
  std::string name;
  std::string user;
  Nanos arrival;
  Nanos iteration;
  Nanos gap;
  std::uint64_t iterations = 0;
  Bytes live;
  Bytes peak;
  double weight = 1;
  double utilisation = 1;  // of each device, while it runs alone
  std::uint32_t gpus = 1;  // devices: with several it is a gang of as many ranks
  wire::Priority priority = wire::Priority::kNormal;
  Bytes limit;               // 0: none
  Nanos deadline;            // of an iteration; 0: none
  double share_limit = 0;    // 0: none
  bool is_elastic = false;   // both limits
  std::string model;         // by which its user's jobs are remembered; "": they are not
  bool says_length = true;   // as register(iterations=...) does
  std::optional<Nanos> due;  // when it should be done, after its arrival; only reported
  SpeedsOfKinds speeds;      // on devices of these kinds; on others as fast as they are
};

// From the begin of the first iteration to the end of the last, if the job never waits.
double seconds_alone(const JobSpec& job);

// When the simulated daemon looks at a holder's page while others wait.
enum class Looks : std::uint8_t {
  kNews,     // when the page says what a decision may depend on (sim_job.h), and every gap_poll
  kGapPoll,  // every gap_poll, as the daemon does
};

// Which jobs may be put on other devices after they have arrived, when some become idle.
enum class Rebinding : std::uint8_t {
  kNever,    // as the coordinator: a job is placed once
  kUnbegun,  // jobs that have run no iteration
  kAny,      // all that wait, with a copy of their memory: nothing real can do that
};

struct Scenario {
  sched::CoordinatorOptions options;
  Models models;
  std::size_t num_devices = 1;
  std::vector<KindSpeed> speeds;  // of each device. Empty: all have the speed 1, and no kind.
  Rebinding rebinding = Rebinding::kNever;
  // One job a device at a time, from one queue over all devices (dispatch/central_queue.h).
  bool is_exclusive = false;
  bool has_rounds = false;        // and that in rounds: kMaxMin
  std::optional<Nanos> gap_poll;  // as it was given
  Looks looks = Looks::kNews;     // follows from all else (settle)
  bool each_iteration = false;    // an event for each boundary, as a check of the arithmetic
  std::optional<Nanos> until;     // stop then; else when all jobs have ended
  std::uint64_t most_events = 0;  // a simulation with more does not end; 0: no limit
  std::vector<JobSpec> jobs;
  std::map<std::string, sched::UserOptions> users;  // by name; the others' are the default
};

// The speed of a device that says no other for the job. pre: there is such a device.
double speed_of(const Scenario& scenario, std::size_t device);
// Devices with equal names of kinds and equal speeds are of one sort.
KindSpeed sort_of(const Scenario& scenario, std::size_t device);
// One device of each sort.
std::vector<std::size_t> sorts_of_devices(const Scenario& scenario);
// The speed of this job on the device.
double speed_of(const Scenario& scenario, std::size_t device, const JobSpec& job);
// A number for each user whom jobs or the scenario name; 0 is who has no name.
std::map<std::string, std::uint32_t> uids_of(const Scenario& scenario);
// The settings of users as coordinators have them, by number.
sched::Users users_of(const Scenario& scenario);

// errors: kInvalidArgument, with the line's number.
Result<Scenario> parse_scenario(std::string_view text);
// The fields of a `device` line alone. errors: kInvalidArgument.
Result<Scenario> parse_device(const std::string& fields);

// Sets what follows from all fields together. Where jobs do not share, no limit on a share counts:
// it would keep a device idle that nobody else may use. The simulated daemon looks at pages as
// often as `gap_poll` says; without that, where a page has news, if that is enough for the policy
// and the jobs, since a look costs an event. pre: all else is set. To be called before the scenario
// is simulated; parse_scenario() has done so.
void settle(Scenario& scenario);

// Whether each value of the job is allowed. errors: kInvalidArgument.
Status check(const JobSpec& job);
// Whether each job has as many devices as it needs, and all together are within what can be
// counted. errors: kInvalidArgument.
Status check_sums(const Scenario& scenario);

}  // namespace gpushare::sim
