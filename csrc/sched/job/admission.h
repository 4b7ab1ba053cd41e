// What each job needs, as learned from its first iterations, and whether the jobs of a device fit
// on it.
//
// A job's persistent memory is what is live at its boundaries, its ephemeral memory what an
// iteration needs beyond that (Salus). Leases take turns, so ephemeral memory is needed once: the
// jobs fit while the sum of persistent and the largest ephemeral memory is within the capacity. If
// all memory fits, nobody's has to move at all; if not even that, persistent memory is spilled in
// turns (memory_plan.h).
//
// While its sizes are unknown a job is alone in time: its lease lasts until they are known, or as
// long as others may be made to wait (quantum.h). Then its room is settled before each lease. It is
// alone in memory as well: what it shares with a lane was free at three closes (lanes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/wire/usage.h"

namespace gpushare::sched {

struct Job;

struct Sizes {
  Bytes persistent;
  Bytes ephemeral;
  bool operator==(const Sizes&) const = default;
};

enum class Fit : std::uint8_t {
  kAll,               // all memory of all jobs at once
  kOneEphemeral,      // all persistent memory, and ephemeral memory in turns
  kPersistentInTurns  // even so, some persistent memory is always spilled
};
// "all", "one_ephemeral", "persistent_in_turns".
const char* name_of(Fit fit);

// Adds up the sizes of the jobs of a device, and says how they fit on it. Jobs whose sizes are
// unknown are only counted.
class Admission {
 public:
  explicit Admission(Bytes capacity) : capacity_(capacity) {}

  // Adds one more job. Nothing: its sizes are unknown.
  void add(const std::optional<Sizes>& sizes);

  [[nodiscard]] Bytes persistent() const { return persistent_; }
  [[nodiscard]] Bytes ephemeral() const { return ephemeral_; }
  [[nodiscard]] Bytes largest_ephemeral() const { return largest_ephemeral_; }
  [[nodiscard]] std::size_t num_unknown() const { return num_unknown_; }
  [[nodiscard]] Fit fit() const;

 private:
  Bytes capacity_;
  Bytes persistent_, ephemeral_, largest_ephemeral_;
  std::size_t num_unknown_ = 0;
};

inline constexpr std::uint64_t kIterationsToLearn = 3;

// `lane`: its lane chunks, which are no part of what it needs as room. Nothing before it has run
// kIterationsToLearn iterations.
std::optional<Sizes> sizes_of(const wire::Usage& usage, Bytes lane);
// The sizes to plan with. Until the job has shown its own, they are those remembered of a job with
// the same model, and no less than it holds already. Whether room is granted never follows from
// them.
std::optional<Sizes> planned_sizes(const Job& job);
// Whether the job is still in its first iterations, from which its sizes are learned.
bool is_learning(const Job& job);

}  // namespace gpushare::sched
