// What the coordinator knows of one job, in groups: who it is, what was set, where it stands in
// line, what it has had, what was measured of it, and what was said about its room.
//
// All accounting lives here, so that policies are pure functions of a record and a job's order key
// changes only when its own record does. The bytes it may have backed are not here: the ledger has
// them (ledger.h). Mutators keep the record consistent; whether a change is allowed is decided
// before (validate.h). The invariants named here are checked by invariants.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/job/busy_meter.h"
#include "csrc/sched/job/measured.h"
#include "csrc/sched/job/place_in_line.h"
#include "csrc/sched/job/profiles.h"
#include "csrc/sched/job/room_record.h"
#include "csrc/sched/job/settings.h"
#include "csrc/wire/address.h"
#include "csrc/wire/core_share.h"
#include "csrc/wire/limits.h"
#include "csrc/wire/priority.h"
#include "csrc/wire/usage.h"

namespace gpushare::wire {
struct Hello;
struct Register;
}  // namespace gpushare::wire

namespace gpushare::sched {

// The job's identity, as the job and its socket say it.
struct Identity {
  wire::Address of;   // Invariant: of.device is the coordinator's device, of.job the job's number.
  std::string name;   // as registered
  std::string group;  // as registered
  std::string command;
  std::string program;  // processes of one program may wait for each other; "": unknown
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  Bytes piece = wire::kHostPieceBytes;  // in which its memory leaves the device, at most
  Bytes device_total;                   // as it says; 0: it does not know
  std::uint64_t arrival = 0;            // counts first registrations
  Nanos registered_at;
};

// What the job has had: leases, and time inside them.
struct Served {
  Term term;                   // of its last lease
  wire::CoreShare core_share;  // as its page says (core_shares.h)
  std::uint64_t leases = 0;
  Nanos time;                 // inside leases, stalls included
  BusyMeter recent{Nanos{}};  // the same, of the recent time; counts from when its device's does
  Nanos waited;               // for leases
  Nanos switching;            // of `time`, until its memory was back at the begin of each lease
  Nanos waited_last;          // for its last lease; where that goes on inside an iteration,
                              // for the ones before too
  double virtual_time = 0;    // seconds served over weight, lifted after absence (shares.h)
  Nanos overrun;              // of its last turn, charged to the next one
  Nanos turn_before;          // of the turn that goes on where it was interrupted
  // When its last lease was granted: with more iterations than that, all it had spilled is back.
  std::uint64_t iterations_granted = std::numeric_limits<std::uint64_t>::max();

  // It was served for `used`, at this weight.
  void charge(Nanos used, double weight);
};

// What a job's place in line depends on, and nothing else: all that a policy sees of it (policy.h).
struct Standing {
  JobId id;
  std::uint32_t uid = 0;
  LaneId in_lane;
  wire::Priority priority = wire::Priority::kNormal;
  double weight = 1;
  Nanos deadline;             // of an iteration; 0: none
  std::uint64_t arrival = 0;  // counts first registrations
  Nanos registered_at;
  std::uint64_t queued = 0;  // counts entries into the table
  Nanos waiting_since;
  Nanos waited;  // for leases before this one
  Nanos served;
  double virtual_time = 0;      // seconds served over weight
  double iterations_to_go = 0;  // 0: unknown
  Nanos iteration;              // how long one takes; 0: unknown
  bool operator==(const Standing&) const = default;
};

// Whether it is known how long the job will use the device still. It is not known of a job that
// does not say how many iterations it has, where no longer run of its model is remembered; of one
// that has run more than it said; and of one whose iterations were not seen yet.
inline bool is_length_known(const Standing& job) {
  return job.iterations_to_go > 0 && job.iteration > Nanos{};
}

// How long that is thought to be, in seconds. Where it is not known, as long as the job has used
// the device (least attained service): where lengths have a heavy tail, what has run for long goes
// on for long.
inline double remaining_seconds(const Standing& job) {
  if (!is_length_known(job)) return to_seconds(job.served);
  return job.iterations_to_go * to_seconds(job.iteration);
}

// Of a rank of a gang on several devices (turns/row.h): it may begin iterations while it has made
// fewer of the gang's steps than this.
struct GangRow {
  std::uint64_t until = 0;
  std::string why;  // for people: until when, or what the gang waits for
};

// A job comes and goes in these steps, each of which is one function of the record:
//
//   new ---connect---> connected ---begin_iterations---> registered ---end_iterations---> connected
//   any of them ---lose_connection---> lost ---connect---> connected
struct Job {
  JobId id;
  Identity who;
  Settings settings;
  PlaceInLine place;
  Served served;
  Measured measured;
  wire::Usage usage;  // as last seen; claims
  RoomRecord room;
  std::optional<GangRow> row = {};
  std::string reason;  // the last decision about it

  // False after Lost, until it says Hello again.
  [[nodiscard]] bool is_connected() const { return is_connected_; }
  // It has iterations to run.
  [[nodiscard]] bool is_registered() const { return is_registered_; }
  // It is or was, perhaps over a connection that is lost: the record goes on.
  [[nodiscard]] bool was_registered() const { return was_registered_; }
  // Whether it has a page, through which it is granted leases and asked for them.
  [[nodiscard]] bool has_page() const { return is_connected_ && is_registered_; }
  // Whether it may stand in line.
  [[nodiscard]] bool may_queue() const { return !settings.is_paused() && !place.is_suspended(); }
  // Of an iteration, as far as it counts; 0: none, or there is no time for it.
  [[nodiscard]] Nanos deadline() const {
    return place.sheds_deadline ? Nanos{} : settings.deadline;
  }
  // What one in twenty iterations takes at least, in the phase that it is in: to be reckoned with
  // where it must not be late. No less than `measured.iteration`.
  [[nodiscard]] Nanos long_iteration() const;
  // What it waited in the iteration that it was last seen in, and just before it.
  [[nodiscard]] Nanos waited_in_iteration() const {
    return usage.iterations == served.iterations_granted ? served.waited_last : Nanos{};
  }

  // A connection begins. What only the one before could say is forgotten; what was measured, and
  // what the job has had, is kept. `is_back`: the record is one that the job has left.
  void connect(const wire::Hello& hello, bool is_back);
  // Its connection is lost. It may still do what it was asked for, so that counts as done.
  void lose_connection();
  // It has iterations to run, as it says; and for the first time, as the `number`th of all jobs.
  void begin_iterations(const wire::Register& wish, Nanos now);
  void arrive(std::uint64_t number, Nanos device_began, Nanos now);
  // It has no more iterations to run.
  void end_iterations();
  // It wants its next lease, and waits for it in the gate.
  void park(Nanos now);

  // Its lease ended after `time`.
  void charge(Nanos time) { served.charge(time, settings.weight); }
  void charge_lease(Nanos since, Nanos now);
  // Takes over what the job says of itself, with impossible numbers cut.
  void observe(const wire::Usage& seen, Nanos now);
  // What jobs before it with its model had to go when they had run as many iterations as it has.
  [[nodiscard]] ExpectedRest expected_rest() const;
  // As it said, or else as is expected; 0: unknown, or it has run more than it said.
  [[nodiscard]] double iterations_to_go() const;
  // The profile that would be remembered if the job ended now.
  [[nodiscard]] Profile profile() const;
  // It is granted its next lease. pre: it waits for one.
  void note_granted(Nanos now);
  [[nodiscard]] Standing standing() const;
  // Its standing as it would be if its lease, open for `time`, ended and it queued again now.
  [[nodiscard]] Standing requeued(Nanos time, Nanos now) const;
  // The whole record as it would be then, for those who tell people about it.
  [[nodiscard]] Job copy_requeued(Nanos time, Nanos now) const;

 private:
  bool is_connected_ = true;
  bool is_registered_ = false;
  bool was_registered_ = false;  // Invariant: true while is_registered_.
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
