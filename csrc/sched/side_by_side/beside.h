// Which jobs may run at the same time under `pack`, by what is known of them (packing.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// Why jobs may not run at the same time.
struct Bar {
  enum class Kind : std::uint8_t {
    kNone,
    kGuaranteed,
    kNotTimed,
    kTooLarge,
    kDelays,
    kOnTrial,
    kDoesNotPay,
    kSize
  };
  Kind kind = Kind::kNone;
  JobSet jobs;  // whom it is about

  explicit operator bool() const { return kind != Kind::kNone; }
};

// "" if there is none.
std::string text_of(const Packing& packing, const Bar& bar);
// "3 and 5".
std::string names_of(const JobSet& set);
// How much faster the set is together than one job alone, and how much it takes to pay: for people.
std::string verdict_text(const Packing& packing, const JobSet& set);

// The jobs that hold leases and run: not those whose process is suspended.
JobSet holders_of(const Device& device);
// How many of a lane's line are looked at to find one that may begin.
inline constexpr std::size_t kMostTried = 16;
// Lanes that are held, so many turns are had at a time; 1 if none is.
std::size_t num_held(const Device& device);
// Why the job may not run together with all of the holders; no bar if it may.
Bar bar_of(const Table& table, const Job& job, const JobSet& holders, Nanos now);
// Why the job may not run together with the holders of all lanes but its own. No bar if it may.
Bar bar_elsewhere(const Table& table, const Job& job, Nanos now);

// The lane of the holder that is last in order, as if all queued again now; null: there is none.
const Lane* last_in_order(const Table& table, const JobSet& holders, Nanos now);
// Which holders have to make way for the job.
JobSet in_the_way(const Table& table, const Job& job, Nanos now);

}  // namespace gpushare::sched
