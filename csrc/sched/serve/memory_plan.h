// Whose room is asked for when somebody needs more than is free: pure planning.
//
// Bytes move only when they must, and as few as can be. What parked jobs can drop without a copy
// goes first. Then what jobs hold beyond an elastic limit, of their own (limit.h) and
// then of another user (user_room.h), as far as it is parked. Then parked jobs give, the furthest
// next use (by the policy's order) first, and only the deficit: so what is to be used soon stays,
// and of k equal jobs that take turns the one that has just run gives. It may be on its way to its
// gate still: then it is worth a short wait, since a nearer job's bytes would come back sooner.
//
// After the parked jobs come those that are not: they give free memory at most, and nothing for a
// moment after a Need of theirs was met. Last, jobs that wait for room themselves. Nobody is asked
// twice at a time, nor again after it gave less than asked, until something about it changed; and
// nobody for more than the host tier has room for (host_tier.h). A job that was interrupted inside
// an iteration (interrupt.h) is not asked at all. Others of the claimant's gang come last of all,
// and give only what they do not use. So do holders that may wait for the claimant themselves.
//
// With several lanes the keys of all of them are compared, though each lane has a line of its own:
// next uses are then an estimate. A holder, of whatever lane, is never asked for what it uses; only
// where two holders wait for room in their iterations the later one gives.
//
// What it does not do: it sends nothing (ask_for_room.h does), and which of its segments a job
// gives is the job's own choice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/serve/giver_line.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

struct Giving {
  JobId job;
  Bytes bytes;
};

// A job that closed its lease a moment ago and is used later than all parked jobs: it would give
// first if it were parked. It is worth waiting for, no longer than its switch costs, and only if it
// came in that time before.
struct ComingGiver {
  JobId job;
  Nanos until;
};

// A plan of who gives room to one job, the claimant. It holds for the moment in which it is made: a
// change of any job or lane makes it void.
class MemoryPlan {
 public:
  // With a user, only jobs of that user are asked. Table and device outlive the plan.
  MemoryPlan(const Table& table,
             JobId claimant,
             Nanos now,
             std::optional<std::uint32_t> of_user = {});

  [[nodiscard]] JobId claimant() const { return claimant_.id; }
  // The jobs to ask, and for how much; less than `deficit` in sum if there is no more to ask for.
  [[nodiscard]] std::vector<Giving> revokes(Bytes deficit);
  // The part of `deficit` that jobs which are parked, or about to be, cannot give without a copy.
  [[nodiscard]] Bytes beyond_drops(Bytes deficit);
  // The job that is worth waiting for before anybody is asked; nothing: none is.
  [[nodiscard]] std::optional<ComingGiver> coming(Bytes deficit);

 private:
  [[nodiscard]] Bytes host_to_use(Bytes deficit) const;
  [[nodiscard]] const Job* find_coming();
  // The line that the job stands in by how willingly it gives; null: it gives nothing.
  GiverLine* line_of(const Job& job);

  const Table& table_;
  const Job& claimant_;
  Nanos now_;
  std::optional<std::uint32_t> of_user_;
  // By how willingly they give: jobs that wait for room themselves come last.
  GiverLine parked_;
  GiverLine unparked_;
  GiverLine blocked_;
  GiverLine peers_;  // of the claimant's gang, and holders that give what they do not use
  Bytes to_spill_;   // what all givers give by copies
};

// After so long a request asks holders of other programs too for what they do not use.
inline constexpr Nanos kPatienceWithHolders = seconds(1);
// Whether a holder would give to this job, which waits for room, what it does not use.
bool gets_from_holders(const Table& table, const Job& claimant, Nanos now);
// A job that holds room and may give it later, by parking, leaving, or answering at last; 0: none.
JobId later_giver(const Table& table, JobId claimant);

}  // namespace gpushare::sched
