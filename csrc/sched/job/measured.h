// What was measured of one job's iterations, of its switches and of the time between its leases.
//
// The averages begin as remembered of a job with the same model (profiles.h); what is measured
// takes their place within a few iterations.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/job/gap_profile.h"
#include "csrc/sched/job/profiles.h"
#include "csrc/sched/job/recent_times.h"
#include "csrc/wire/usage.h"

namespace gpushare::sched {

// From where the time of an iteration is known.
enum class Source : std::uint8_t {
  kUnknown,     // none was seen
  kRemembered,  // of a job with the same model (profiles.h)
  kMeasured
};
// "unknown", "remembered", "measured".
const char* name_of(Source source);

// Anything above is a wild claim, and would overflow when multiplied.
inline constexpr Nanos kMaxIteration = seconds(1'000'000);

struct Measured {
  Nanos stall;                     // moving average: what a switch to it costs, idle lane and stall
  Nanos handover;                  // before its last lease: for how long the lane was idle
  Nanos iteration;                 // moving average
  Nanos gap_since;                 // when the iteration before its last close ended
  RecentTimes alone;               // of its iterations while no other job of its device ran
  RecentTimes pauses;              // between two iterations of a lease
  Nanos alone_noted;               // what sets of jobs were judged by (packing.h)
  GapProfile gaps;                 // how long it was away between two leases
  double harvest_share = 1;        // of a guaranteed job (harvest.h)
  double harvest_harm = 0;         // what its returns waited, over the time between two of them
  Nanos park_delay;                // from the end of a lease until it wanted the next, last time
  std::optional<Nanos> closed_at;  // its last lease, unless it wants the next already

  std::uint64_t fingerprint = 0;      // of its model; 0: none
  std::optional<Profile> remembered;  // of the same model
  bool has_iterated = false;
  std::uint64_t iterations = 0;  // that `iteration` follows from, of this model
  Nanos busy;                    // in them
  std::uint64_t length = 0;      // all iterations of the job with this model
  std::uint32_t switches = 0;

  // Its page counts since its process began, and the next Usage says from where on it is seen.
  bool has_counted_before = false;
  Nanos observed_at;  // when its last Usage was seen

  [[nodiscard]] Source iteration_source() const;
  // The job registers anew, with another model: what was measured of the model before does not
  // count for this one.
  void begin_model(std::uint64_t model, const Profile* known);
  // Its profile is remembered: what is measured from now on is of the next registration.
  void measure_anew();
  // Its page counts `before` iterations no more, but `now`.
  void note_length(std::uint64_t before, std::uint64_t now, bool is_baseline);
  // The job ran `num` iterations, which took `time` in all. `usual`: the median that the job knows,
  // or 0.
  void note_iterations(std::uint64_t num, Nanos time, Nanos usual);
  // Its lease ends, with this usage: takes over what the switch to it cost.
  void note_closed(const wire::Usage& usage, Nanos now);
  // The job wants a lease again.
  void note_parked(Nanos now);
};

}  // namespace gpushare::sched
