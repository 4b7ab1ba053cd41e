// The pool of a lane: slots of physical memory that jobs of one user share, each while its lease is
// open. Slots are numbers; whose file they lie in is the daemon's business.
//
// Which problem it solves: memory that is dead between iterations is needed once, not once a job.
// The pool holds as many slots as the job with the most lane chunks has use for, and counts against
// the capacity once (ledger.h). A job uses the first slots of the table, as many as it has chunks.
// A slot with a live block at close is donated: it leaves the pool and is its job's alone, until
// the job returns it.
//
// How used: the handlers (lanes.cpp) change it as LaneChanged says, and settle the ledger with what
// each call returns. A user has a pool in each lane that its jobs are in; the numbers are one
// user's in all of them (slot_numbers.h), so a job keeps its donated slots when it changes the
// lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/table/slot_numbers.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {

class LanePool {
 public:
  struct Member {
    std::size_t num_chunks = 0;  // slots it has use for
    std::uint64_t told = 0;      // the version it knows; 0: none
    std::set<std::uint32_t> donated = {};
    std::vector<std::uint32_t> aside = {};  // that it uses, inside an iteration, without a lease
  };

  // `numbers` are its user's, and must outlive it.
  explicit LanePool(SlotNumbers& numbers) : numbers_(numbers) {}

  // Without what is set aside.
  [[nodiscard]] const std::vector<std::uint32_t>& slots() const { return slots_; }
  [[nodiscard]] Bytes bytes() const { return bytes_of(size()); }
  [[nodiscard]] std::size_t size() const;
  // Changes with the table.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] const std::map<JobId, Member>& members() const { return members_; }
  // 0 for a job that is no member.
  [[nodiscard]] std::size_t num_chunks(JobId job) const;
  // How many slots the member that can use the most has use for.
  [[nodiscard]] std::size_t num_wanted() const;
  [[nodiscard]] bool has_donated(JobId job, std::uint32_t slot) const;
  // Whether the job may keep it: it is in the table, or the job's own that is set aside.
  [[nodiscard]] bool has_slot(JobId job, std::uint32_t slot) const;
  // Slots that the job would use: the first ones.
  [[nodiscard]] std::size_t num_used(JobId job) const;

  // Made if it is none yet.
  Member& member(JobId job) { return members_[job]; }

  // By at most `count` slots; by how many.
  std::size_t grow(std::size_t count);
  // The last slots leave; they are to be emptied.
  std::vector<std::uint32_t> shrink_to(std::size_t count);
  // pre: has_slot(job, slot).
  void donate(JobId job, std::uint32_t slot);
  // The slot that was donated to the job is free again, and is to be emptied. pre: has_donated(job,
  // slot).
  void take_back(JobId job, std::uint32_t slot);
  // The job's process is gone: what it kept is in use no more.
  void remove(JobId job);
  // The slots that the job uses are no others' until end_aside.
  void set_aside(JobId job);
  // The slots that were set aside belong to the pool again. If the job goes on they are the first,
  // so that it uses the same ones. Otherwise they are the last, because another job may use the
  // first.
  void end_aside(JobId job, bool goes_on);
  // Out of this pool, and into that of the lane it changes to, with what it keeps; there it knows
  // of no table yet. pre: it is a member of this one, and of no other.
  void move_member(JobId job, LanePool& to);

  static Bytes bytes_of(std::size_t num_slots) {
    return wire::kLaneSlotBytes * static_cast<std::int64_t>(num_slots);
  }
  // Whole slots in so many bytes.
  static std::size_t slots_in(Bytes bytes) {
    return bytes <= Bytes{} ? 0 : bytes.to_size() / wire::kLaneSlotBytes.to_size();
  }

  void check_invariants() const;

 private:
  std::vector<std::uint32_t> slots_;  // in the order in which they are used
  SlotNumbers& numbers_;              // Invariant: slots_ and all that is donated is used there.
  std::map<JobId, Member> members_;
  std::uint64_t version_ = 1;
};

}  // namespace gpushare::sched
