// Both messages are numbered from one sequence of the job, so that each side can tell an old one. A
// Grant names the job's new total and not a difference: a total cannot be counted twice. For the
// same reason no Grant is sent while a Revoke has no answer, as its total would undo what the job
// is just giving up.
//
// A Revoke says how many bytes the job may add to the host tier for it. That is rounded up by what
// a last piece may be larger than the rest, where others do not need the space. So a job is not
// held up by less than one piece.
#include "csrc/sched/memory/room_messages.h"

#include <algorithm>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/room.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::sched {

void grant_room(Step& step, Job& job, Bytes by, std::uint64_t need_n) {
  GS_CHECK(!job.room.revoke.has_value(), "job {} owes Released {}", job.id.value,
           job.room.revoke->n);
  step.device().ledger.raise(job.id, by);
  job.room.note_change();  // what it did not have before, it may give
  job.room.last_grant_n = ++job.room.last_n;
  step.send(job.id, wire::Grant{.of = job.who.of,
                                .n = job.room.last_grant_n,
                                .need_n = need_n,
                                .room = step.device().ledger.room(job.id),
                                .lane_n = job.room.lane_heard});
}

void revoke_room(Step& step, Job& job, Bytes bytes, Bytes host_kept, const std::string& reason) {
  Device& device = step.device();
  GS_CHECK(!job.room.revoke.has_value(), "job {} owes Released {}", job.id.value,
           job.room.revoke->n);
  GS_CHECK(bytes > Bytes{0} && bytes <= device.ledger.room(job.id), "{} of {}", to_string(bytes),
           to_string(device.ledger.room(job.id)));
  const HostBytes free = host_free(step.table());
  // More than it is thought to spill, where others do not need it: it may have less unused room
  // than its page said, and the last piece may be larger than what is left to spill.
  const Bytes most = round_up(bytes, wire::kHostPieceBytes) + job.who.piece - wire::kHostPieceBytes;
  const HostBytes may_spill =
      free.first(std::clamp(most, Bytes{0}, std::max(free.total() - host_kept, Bytes{0})));
  job.room.revoke = PendingRevoke{.n = ++job.room.last_n,
                                  .bytes = bytes,
                                  .sent_at = step.now(),
                                  .num_changes = job.room.num_changes,
                                  .stored_before = stored_in_host_tier(job),
                                  .may_spill = may_spill,
                                  .late = late_room(job)};
  device.asked += bytes;
  device.planned_spill += std::max(bytes - droppable(device, job), Bytes{0});
  step.send(job.id, wire::Revoke{.of = job.who.of,
                                 .n = job.room.revoke->n,
                                 .bytes = bytes,
                                 .most_ram = may_spill.ram,
                                 .most_file = may_spill.file});
  step.decide(job.id, "revoke", fmt::format("{} {}", to_string(bytes), reason));
}

}  // namespace gpushare::sched
