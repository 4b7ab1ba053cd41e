// Who may have how many bytes of one device backed: room per job, and the lanes' pools, which jobs
// share.
//
// Exact by construction: room rises only out of what is free, and falls only by what its job said
// is really free. The one exception is attach(): a job that comes with memory already backed (after
// a coordinator's restart) is booked with all of it, even beyond the capacity; then free() is
// negative and nobody's room rises until enough was given back. So it is where others than jobs
// take some of the device (withhold).
#pragma once

#include <cstdint>
#include <map>

#include "csrc/base/units.h"

namespace gpushare::sched {

class Ledger {
 public:
  // pre: capacity > 0.
  explicit Ledger(Bytes capacity);

  // The bytes that there are for jobs: those that were configured, less those that others hold.
  [[nodiscard]] Bytes capacity() const { return configured_ - withheld_; }
  [[nodiscard]] Bytes configured() const { return configured_; }
  [[nodiscard]] Bytes withheld() const { return withheld_; }
  // Capacity less the sum of room and the lanes' pools; negative after an attach() beyond it, and
  // where more is withheld than was free.
  [[nodiscard]] Bytes free() const { return capacity() - total_ - pools_; }
  [[nodiscard]] Bytes pools() const { return pools_; }
  // 0 for a job without an entry.
  [[nodiscard]] Bytes room(JobId job) const;
  [[nodiscard]] const std::map<JobId, Bytes>& rooms() const { return rooms_; }

  // All jobs of one user.
  [[nodiscard]] Bytes of_user(std::uint32_t uid) const;

  // Whose the job is. pre: attached, with 0 bytes.
  void belongs_to(JobId job, std::uint32_t uid);
  // The job holds `resident` bytes, whatever was booked before. pre: resident >= 0.
  void attach(JobId job, Bytes resident);
  // pre: attached; 0, or 0 < by <= free().
  void raise(JobId job, Bytes by);
  // pre: attached; 0 <= by <= room(job).
  void lower(JobId job, Bytes by);
  // Changes the bytes of the pools of lanes, which no job holds. pre: 0 <= by <= free(); 0 <= by <=
  // pools().
  void raise_pools(Bytes by);
  void lower_pools(Bytes by);
  // Moves bytes from a pool to the room of the job. pre: attached; 0 <= by <= pools().
  void donate(JobId job, Bytes by);
  // Others than jobs hold so much of what was configured. What is granted stays granted. pre: 0 <=
  // bytes < configured().
  void withhold(Bytes bytes);
  // Its process is gone.
  void remove(JobId job);

  void check_invariants() const;

 private:
  void change(JobId job, Bytes& room, Bytes by);

  Bytes configured_;
  Bytes withheld_;  // Invariant: 0 <= withheld_ < configured_.
  Bytes total_;     // Invariant: the sum of rooms_.
  Bytes pools_;     // Invariant: >= 0.
  std::map<JobId, Bytes> rooms_;
  std::map<JobId, std::uint32_t> users_;     // of the jobs
  std::map<std::uint32_t, Bytes> of_users_;  // Invariant: the sums of their rooms.
};

}  // namespace gpushare::sched
