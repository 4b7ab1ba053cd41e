// The exchange about one job's room: the numbers of messages, the Revoke that has no answer yet,
// and what the job could not give. How many bytes it may have is not here: the ledger has that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"

namespace gpushare::wire {
struct Released;
}  // namespace gpushare::wire

namespace gpushare::sched {

// A Revoke that has no Released yet. While it is out the job gets no Grant: a Grant names the new
// total, and would undo a Released that is on its way.
struct PendingRevoke {
  std::uint64_t n = 0;
  Bytes bytes;
  Nanos sent_at;
  std::uint64_t num_changes = 0;  // of the job when it was sent
  bool is_held_back = false;      // by the transfer budget (transfer.h)
  // What the job had in the host tier when this was sent, and how much it may add to that
  // (host_tier.h).
  HostBytes stored_before{};
  HostBytes may_spill{};
  // Bytes in the host tier that its next iteration may begin without, when this was sent.
  Bytes late{};
};

struct RoomRecord {
  std::uint64_t last_n = 0;
  std::uint64_t last_grant_n = 0;  // of this connection. Invariant: last_grant_n <= last_n.
  std::uint64_t consumed_n = 0;
  // Invariant: its number is at most last_n, its bytes at most the room that the ledger has.
  std::optional<PendingRevoke> revoke;
  Bytes undroppable;  // looked free, and was not (host_tier.h)

  // LaneChanged of this connection (lanes.h).
  std::uint64_t lane_heard = 0;
  Bytes lane{};  // its lane chunks, within its limit as its room is
  std::optional<Nanos> lane_unheard_since;

  bool cannot_give = false;  // gave less than asked; not asked again until something changed
  // While it cannot give: when it is asked again. A thread of it holds its memory in place, or its
  // disk is full, and either may pass. Nothing: it is asked again when something changes.
  std::optional<Nanos> asked_again_at;
  int num_place_tries = 0;  // since its disk last had a place: how often it was asked again
  // While it cannot give: what the host tier had no place for, and why, in its own words.
  Bytes unplaced;
  std::string short_reason;

  std::uint64_t num_changes = 0;
  Nanos spared_until;  // it just got what it needs: asked at once, it would only ask again

  // Something has changed: what the job could not give before, it may be able to give now.
  void note_change();
  // The time until `asked_again_at` is over.
  void end_pause();
  // The job answered in full what it was asked for.
  void note_given() { num_place_tries = 0; }
  // The job gave less than `asked` said. If anything of the job has changed since it was asked,
  // that is no reason not to ask it again.
  void note_short(const PendingRevoke& asked, const wire::Released& released, Nanos now);
};

}  // namespace gpushare::sched
