// The lease page: 4 KiB that one job and the coordinator share, one per job and registration.
//
// Which problem it solves: while nobody else waits, an iteration must cost no system call, and a
// hand-over must cost two futex hops. So the lease is one 64-bit word in shared memory, and both
// sides change it only by compare-and-swap along this drawing:
//
//   kIdle ------job: want------> kWanted --coordinator: grant, term+1--> kOpenBusy
//   kOpenBusy <--job: begin / end iteration--> kOpenGap
//   kOpenBusy --coordinator: ask (revoke bit)--> stays; --job: end--> kClosing
//   kOpenGap --coordinator: ask--> kClosing          (the job's client thread closes)
//   kOpenBusy, kOpenGap --job: close, unasked--> kClosing
//   kClosing ---job: finish_close--> kIdle
//   kWanted ----job: give_up-----> kIdle
//
// A job that is asked to (urgent_term) gives its lease up inside an iteration, at a safepoint: it
// closes unasked and wants the next at once, with is_inside = 1: none of its memory may move.
//
// The word:  63............4 | 3      | 2..0
//            term            | revoke | state      the futex is on the low 32 bits
//
// What it does not do: it identifies nobody (the socket does), and nothing in it is believed beyond
// the job it belongs to. Zeroed memory is a valid kIdle page. Every field but the word has one
// writer.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/core_share.h"
#include "csrc/wire/usage.h"

namespace gpushare::wire {

enum class LeaseState : std::uint8_t {
  kIdle = 0,      // no lease, none asked for
  kWanted = 1,    // the job's main thread waits (or is about to) for a grant
  kOpenBusy = 2,  // lease open, inside an iteration
  kOpenGap = 3,   // lease open, between iterations
  kClosing = 4,   // the job's side is closing. Whichever thread of the job finishes the close makes
                  // it kIdle: the one that ended the iteration, the client thread when the
                  // coordinator took the lease in the gap, or the next one at the gate
};
const char* name_of(LeaseState state);

// A value of the lease word.
class LeaseWord {
 public:
  constexpr LeaseWord() = default;
  constexpr explicit LeaseWord(std::uint64_t bits) : bits_(bits) {}
  constexpr LeaseWord(Term term, LeaseState state, bool is_asked)
      : bits_(term.value << 4 | std::uint64_t{is_asked} << 3 | static_cast<std::uint64_t>(state)) {}

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr Term term() const { return Term{bits_ >> 4}; }
  [[nodiscard]] constexpr LeaseState state() const { return static_cast<LeaseState>(bits_ & 7); }
  // The coordinator wants the lease back at the next boundary.
  [[nodiscard]] constexpr bool is_asked() const { return (bits_ & 8) != 0; }
  [[nodiscard]] constexpr bool is_open() const {
    return state() == LeaseState::kOpenBusy || state() == LeaseState::kOpenGap;
  }
  // The part of the word that the futex compares.
  [[nodiscard]] constexpr std::uint32_t low() const { return static_cast<std::uint32_t>(bits_); }
  constexpr bool operator==(const LeaseWord&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

enum class BoundaryKind : std::uint32_t {
  kNone = 0,
  kExplicit = 1,     // job.step() or the end of `with job.iteration()`
  kOptimizer = 2,    // optimizer step post hook
  kScaler = 3,       // GradScaler.update without an optimizer step
  kForward = 4,      // end of a forward in evaluation
  kNextForward = 5,  // a training loop without a torch optimizer: the next forward began
  kException = 6,
  kIdleRule = 7,  // closed by the client thread: asked, and the process did nothing
};

inline constexpr std::uint32_t kPageMagic = 0x31505347;  // "GSP1"
inline constexpr std::size_t kPageBytes = 4096;

// The layout. Times are CLOCK_MONOTONIC ns, sizes bytes.
struct LeasePage {
  // Written by the coordinator before the page is passed on.
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t epoch;
  std::uint64_t job;
  std::uint64_t gang;  // a hash of its name; 0: none
  std::uint32_t rank;
  std::uint32_t ranks;
  std::array<std::uint8_t, 24> reserved0;  // must be 0

  alignas(64) std::atomic<std::uint64_t> word;  // both; see the drawing
  std::array<std::uint8_t, 56> reserved1;

  // Written by the coordinator.
  alignas(64)
      std::atomic<std::uint64_t> grant_n;   // Grant that must be in force before this lease is used
  std::atomic<std::int64_t> granted_ns;     // when the word became kOpenBusy
  std::atomic<std::uint32_t> num_waiting;   // other jobs that wait for a lease
  std::atomic<std::uint32_t> num_sharing;   // jobs that may share this lane's pool, this one too
  std::atomic<std::int64_t> transfer_rate;  // bytes a second that the job may copy; 0: no limit
  // The term of a lease that is wanted back inside its iteration, at the next safepoint; 0: none.
  std::atomic<std::uint64_t> urgent_term;
  std::atomic<std::uint32_t> may_be_interrupted;  // by a job that is here now
  std::atomic<std::uint32_t> core_share;          // CoreShare, from its next iteration on
  // Of a rank of a gang on several devices: it ends its lease at a boundary where it has made so
  // many of the gang's steps; 0: nothing was agreed.
  std::atomic<std::uint64_t> stop_at;
  // Another process of the job's program waits for a lease or for room, perhaps one that the job
  // waits for inside its iteration.
  std::atomic<std::uint32_t> is_program_waiting;
  std::array<std::uint8_t, 4> reserved2;

  // Written by the job.
  alignas(64) std::atomic<std::uint64_t> iterations;
  std::atomic<std::uint64_t> optimizer_steps;
  std::atomic<std::int64_t> busy_ns;         // total inside iterations
  std::atomic<std::int64_t> changed_ns;      // last change between busy and gap
  std::atomic<std::uint32_t> boundary_kind;  // BoundaryKind of the last boundary
  std::atomic<std::uint32_t> is_parked;      // in the gate, or in a gap in which memory may move
  std::atomic<std::int64_t> stall_ns;        // exposed cost of the last open
  std::atomic<std::int64_t> live_bytes;
  std::atomic<std::int64_t> need_bytes;
  std::atomic<std::int64_t> resident_bytes;
  std::atomic<std::int64_t> spilled_bytes;
  std::atomic<std::int64_t> dropped_total_bytes;  // moved so far, by cause
  std::atomic<std::int64_t> spilled_total_bytes;
  std::atomic<std::int64_t> restored_total_bytes;
  std::atomic<std::int64_t> outside_bytes;      // of the outside arena: backed, or spilled
  std::atomic<std::uint64_t> lane_changes;      // LaneChanged sent on this connection
  std::atomic<std::int64_t> lane_bytes;         // mapped from the lane's pool
  std::atomic<std::int64_t> donated_bytes;      // of resident_bytes
  std::atomic<std::int64_t> overflow_bytes;     // used in the host tier
  std::atomic<std::int64_t> host_file_bytes;    // of spilled_bytes and overflow_bytes
  std::atomic<std::int64_t> late_bytes;         // of spilled_bytes
  std::atomic<std::uint32_t> is_held_back;      // has bytes to copy, and keeps to transfer_rate
  std::atomic<std::int64_t> device_free_bytes;  // of the device, for all; 0: unknown
  // Times of the last iterations (IterationTime), by phase; 0: none is known.
  std::atomic<std::int64_t> training_ns;
  std::atomic<std::int64_t> training_tail_ns;
  std::atomic<std::int64_t> evaluation_ns;
  std::atomic<std::int64_t> evaluation_tail_ns;
  std::atomic<std::uint32_t> is_inside;  // without a lease, at a safepoint
  // Between two of the last iterations, likewise.
  std::atomic<std::int64_t> gap_ns;
  std::atomic<std::int64_t> mean_gap_ns;
  // Iterations that trained, since the job joined its gang. Before the end of each, so that whoever
  // sees the lease closed sees it.
  std::atomic<std::uint64_t> gang_steps;
};

static_assert(sizeof(LeasePage) <= kPageBytes);
static_assert(std::is_standard_layout_v<LeasePage>);
static_assert(offsetof(LeasePage, word) == 64 && offsetof(LeasePage, grant_n) == 128 &&
              offsetof(LeasePage, iterations) == 192);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// ---- transitions: one compare-and-swap each, or a loop over one. The side named may call it. ----

enum class BeginResult : std::uint8_t { kEntered, kMustWant, kMustWait };
enum class EndResult : std::uint8_t { kKept, kMustClose, kNotOpen };
enum class AskResult : std::uint8_t { kAsked, kTakenInGap, kStale };

// job: kOpenGap -> kOpenBusy (or already busy): kEntered. kIdle: kMustWant. Else kMustWait.
BeginResult try_begin(LeasePage& page);
// job: kOpenBusy -> kOpenGap: kKept; -> kClosing if asked: kMustClose (the caller closes, then
// calls finish_close). In any other state: kNotOpen.
EndResult try_end(LeasePage& page);
// job: kIdle -> kWanted; false in any other state.
bool want(LeasePage& page);
// job: kWanted -> kIdle; false if it is no longer kWanted (it may have been granted).
bool give_up(LeasePage& page);
// job: kOpenBusy or kOpenGap -> kClosing, unasked; false if not open.
bool start_close(LeasePage& page);
// job: kClosing -> kIdle. pre: the caller is the one that closes.
void finish_close(LeasePage& page);

// coordinator: kWanted -> kOpenBusy with `term`; false if it is not kWanted. pre: term > the
// word's.
bool grant(LeasePage& page, Term term);
// coordinator: wants the lease `term` back. kAsked: the revoke bit is set; kTakenInGap: now
// kClosing; kStale: not open with that term.
AskResult ask(LeasePage& page, Term term);
// coordinator: as ask, and at the next safepoint if that comes before the boundary.
AskResult ask_inside(LeasePage& page, Term term);
// job: whether it is at the step where its gang stops. Cheap.
bool is_at_stop(const LeasePage& page);
// job: whether the lease that is open was asked for by ask_inside. Cheap.
bool is_asked_inside(const LeasePage& page);

// Either: the word now.
LeaseWord load(const LeasePage& page);
// coordinator: the job's counters, clamped to non-negative values.
Usage read_usage(const LeasePage& page);
// coordinator: zeroed memory -> a page of this job. job: whether this is a page it can use.
void initialise(LeasePage& page, std::uint64_t epoch, const Address& of);
bool is_valid(const LeasePage& page);

}  // namespace gpushare::wire
