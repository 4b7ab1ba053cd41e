// What the coordinator knows of one job: who it is, what it wants, what it has had.
//
// All accounting lives here, so that policies are pure functions of a record and a job's order key
// changes only when its own record does. The bytes it may have backed are not here: the ledger has
// them (ledger.h). Mutators keep the record consistent; whether a change is allowed is decided
// before (validate.h).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/job/busy_meter.h"
#include "csrc/sched/job/gap_profile.h"
#include "csrc/sched/job/profiles.h"
#include "csrc/sched/job/recent_times.h"
#include "csrc/wire/core_share.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {

// A Revoke that has no Released yet. While it is out the job gets no Grant: a Grant names the new
// total, and would undo a Released that is on its way.
struct PendingRevoke {
  std::uint64_t n = 0;
  Bytes bytes;
  Nanos sent_at;
  std::uint64_t num_changes = 0;  // of the job when it was sent
  bool is_held_back = false;      // by the transfer budget (transfer.h)
  // What it had in the host tier, and what this may add to it (host_tier.h).
  HostBytes stored_before{};
  HostBytes may_spill{};
  Bytes late{};  // of what it has there, what it needs late
};

// Where what is thought of a job's iterations comes from.
enum class Source : std::uint8_t {
  kUnknown,     // none was seen
  kRemembered,  // of a job with the same model (profiles.h)
  kMeasured
};
// "unknown", "remembered", "measured".
const char* name_of(Source source);

struct Job {
  JobId id;
  wire::Address of;
  std::string command;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  Bytes piece = wire::kHostPieceBytes;  // in which its memory leaves the device, at most
  Bytes device_total;                   // as it says; 0: it does not know
  bool is_connected = true;             // false after Lost, until it says Hello again
  bool is_registered = false;           // has iterations to run

  // As registered, or changed since (change.h).
  std::string name;
  std::string group;
  wire::Priority priority = wire::Priority::kNormal;
  double weight = 1;
  Bytes memory_limit;       // 0: none
  double share_limit = 0;   // the most of the device's time (share_limit.h); 0: none
  bool is_elastic = false;  // both bind only while others want what is beyond them
  Bytes user_limit;         // of all jobs of its user; 0: none (user_room.h)
  bool is_user_elastic = false;
  Nanos deadline;         // of an iteration, since it wants a lease; 0: none
  wire::Changes changes;  // since it registered first: the job may not know all of them
  std::optional<std::uint32_t> paused_by;  // the user: it gets no lease
  Nanos paused_at;
  std::optional<Nanos> suspended_since;  // its process is (suspended.h)
  std::uint64_t iterations_total = 0;
  Nanos registered_at;
  bool was_registered = false;  // kept over a lost connection: the record goes on

  // Its place in line.
  LaneId in_lane;              // of its device
  LaneId placed_in;            // where it is to be as soon as it may be moved (lane_moves.h)
  std::optional<Sizes> sizes;  // by which that is planned
  bool is_waiting = false;     // in its lane's table
  // Without a lease inside an iteration, at a safepoint (interrupt.h): it needs all its memory.
  bool is_inside = false;
  // Its connection is new: it may have stopped there before, and has not wanted a lease since.
  bool may_come_inside = false;
  // Wants a lease, and is not in the table since it is paused, or its process suspended.
  bool waits_aside = false;
  // Wants a lease, and is not in the table: another of its gang is, or has one, or they are to come
  // together first (gang.h).
  bool waits_in_gang = false;
  std::uint64_t arrival = 0;  // counts first registrations
  std::uint64_t queued = 0;   // counts entries into the table
  Nanos waiting_since;

  // What it has had.
  Term term;                   // of its last lease
  wire::CoreShare core_share;  // as its page says (core_shares.h)
  std::uint64_t leases = 0;
  Nanos served;               // inside leases, stalls included
  BusyMeter recent{Nanos{}};  // the same, of the recent time; counts from when its device's does
  Nanos waited;               // for leases
  Nanos waited_last;          // for its last lease; where that goes on inside an iteration,
                              // for the ones before too
  double virtual_time = 0;    // seconds served over weight, lifted after absence (lane.h)
  Nanos overrun;              // of its last turn, charged to the next one
  Nanos stall;                // moving average: what a switch to it costs, idle lane and stall
  Nanos handover;             // before its last lease: for how long the lane was idle
  Nanos iteration;            // moving average
  Nanos gap_since;            // when the iteration before its last close ended
  RecentTimes alone;          // of its iterations while no other job of its device ran
  RecentTimes pauses;         // between two iterations of a lease
  Nanos alone_noted;          // what sets of jobs were judged by (packing.h)
  GapProfile gaps;            // how long it was away between two leases
  double harvest_share = 1;   // of a guaranteed job (harvest.h)
  double harvest_harm = 0;    // what its returns waited, over the time between two of them
  Nanos park_delay;           // from the end of a lease until it wanted the next, last time
  std::optional<Nanos> closed_at;  // its last lease, unless it wants the next already

  // Of its model: the averages above begin as remembered, and what is measured takes their place.
  std::uint64_t fingerprint = 0;  // 0: none
  std::optional<Profile> remembered;
  bool has_iterated = false;
  std::uint64_t measured_iterations = 0;
  Nanos measured_busy;  // in them
  std::uint32_t measured_switches = 0;

  wire::Usage usage;  // as last seen; claims
  // Its page counts since its process began, and the next Usage says from where on it is seen.
  bool has_counted_before = false;
  // When its last lease was granted: with more iterations than that, all it had spilled is back.
  std::uint64_t iterations_granted = std::numeric_limits<std::uint64_t>::max();
  Nanos observed_at;

  // Room: numbers of what was sent, and what is unanswered.
  std::uint64_t last_n = 0;
  std::uint64_t last_grant_n = 0;  // of this connection
  std::uint64_t consumed_n = 0;
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

  std::string reason;  // the last decision about it

  // What it may not be above, free as the device may be; 0: no limit.
  [[nodiscard]] Bytes hard_limit() const { return is_elastic ? Bytes{0} : memory_limit; }
  [[nodiscard]] Bytes hard_user_limit() const { return is_user_elastic ? Bytes{0} : user_limit; }
  // The most that it may hold by itself; 0: no limit.
  [[nodiscard]] Bytes most_memory() const;
  [[nodiscard]] bool is_paused() const { return paused_by.has_value(); }
  [[nodiscard]] bool is_suspended() const { return suspended_since.has_value(); }
  // Whether it may stand in line.
  [[nodiscard]] bool may_queue() const { return !is_paused() && !is_suspended(); }
  [[nodiscard]] Source iteration_source() const;
  // What one in twenty iterations takes at least, in the phase that it is in: to be reckoned with
  // where it must not be late. No less than `iteration`.
  [[nodiscard]] Nanos long_iteration() const;
  // What it waited in the iteration that it was last seen in, and just before it.
  [[nodiscard]] Nanos waited_in_iteration() const {
    return usage.iterations == iterations_granted ? waited_last : Nanos{};
  }

  // Its lease ended after `time`.
  void charge(Nanos time);
  void charge_lease(Nanos since, Nanos now);
  // Takes over what the job says of itself, with impossible numbers cut.
  void observe(const wire::Usage& seen, Nanos now);
  // It registers anew, with another model: what was measured of the one before is not of this one.
  void begin_model(std::uint64_t model, const Profile* known);
  // What is to be remembered of it now.
  [[nodiscard]] Profile profile() const;
  // That is remembered: what is measured from now on is of the next registration.
  void measure_anew();
  // What it could not give before, it may be able to give now.
  void note_change();
  // The time until `asked_again_at` is over.
  void end_pause();
  // It answered in full what it was asked for.
  void note_given() { num_place_tries = 0; }
  // It gave less than `asked` said. A change since then makes that old news.
  void note_short(const PendingRevoke& asked, const wire::Released& released, Nanos now);
  // It is granted its next lease. pre: it waits for one.
  void note_granted(Nanos now);
  // Its lease ends: takes over what the switch to it cost.
  void note_closed(Nanos now);
  // It wants a lease again.
  void note_parked(Nanos now);
  // This record as it would be if its lease, open for `time`, ended and it queued again now.
  [[nodiscard]] Job requeued(Nanos time, Nanos now) const;

 private:
  // They took `busy` in all; `usual`: the median that the job knows, or 0.
  void note_iterations(std::uint64_t num, Nanos busy, Nanos usual);
};

// "3 (gpt)", or "3" before it has a name.
std::string label(const Job& job);

// What the job has in the host tier, as it last said.
HostBytes stored_in_host_tier(const Job& job);
// From now on the job counts with this, until it says something else.
void note_stored(Job& job, const HostBytes& stored);
// What the job has in the host tier, or is on the way there (host_tier.h).
HostBytes host_bytes(const Job& job);
// The job has changed something in its lane at a close that its socket has not said yet: slots that
// it keeps may still be in the pool (lanes.h).
bool is_unheard(const Job& job);

}  // namespace gpushare::sched
