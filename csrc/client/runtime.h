// The job's side: joins the lease page, the allocator and the coordinator's connection.
//
// One object a process, owned by `binding/`. Life: create (no thread, no socket) -> attach, at the
// first chunk the allocator backs -> register_job -> begin/end iteration, many times ->
// unregister_job.
//
// Threads: the user's threads call begin_iteration(), end_iteration(), grow() and the rest. On a
// GPU one thread at a time may iterate, and the gate fails for a second one. The client thread
// reads the socket, takes leases back in the gap, gives room back when it is asked, watches the
// idle rule and reconnects. Nothing here needs the GIL. Only ClientConfig::is_interrupted may take
// it, on a thread that waits.
//
// Without a coordinator (none can be reached or started) the job goes on unmanaged: its room has no
// limit, the gate is open, and the reason is kept for stats() and one warning.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/allocator/room_source.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/client/config.h"
#include "csrc/wire/job_settings.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/usage.h"

namespace gpushare::client {

struct RegisterOptions {
  std::string name = {};
  std::string group = {};
  wire::JobSettings settings = {};
  bool elastic_threads = false;   // fewer threads work on an operation beside others
  std::uint64_t fingerprint = 0;  // of its model; 0: none
  std::string gang = {};
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::string arbiter = {};  // that the ranks' coordinators have in common; "": they have one
};

enum class GateResult : std::uint8_t { kEntered, kTimedOut };
// The pass of the iteration in which a safepoint lies.
enum class Safepoint : std::uint8_t { kForward, kBackward };

// The job's memory now, and how much of it was moved since attach.
struct JobMemory {
  Bytes room, resident, spilled, live, outside;
  Bytes lane;         // mapped from the lane's pool
  Bytes overflow;     // used in the host tier, since it was refused room
  Bytes donated;      // of `resident`: slots of the lane's pool that this job keeps
  Bytes peak_backed;  // highest room in use of any iteration
  alloc::ResidencyTotals moved;
};

// Totals since attach; times as seen by this process.
struct JobStats {
  JobId job;  // 0: unmanaged
  bool is_managed = false;
  bool is_registered = false;
  std::string unmanaged_reason;
  std::string lease_state;  // "kIdle" ...
  Term term;
  std::uint64_t iterations = 0, optimizer_steps = 0, leases = 0;
  std::uint64_t reconnects = 0;
  std::uint64_t interruptions = 0;  // of iterations, at safepoints
  Nanos busy;                       // inside iterations
  Nanos waited;                     // in the gate, for a lease
  Nanos moving;                     // in the gate, lease granted, memory coming back
  Nanos held;                       // total time a lease was open: active_seconds
  std::uint64_t num_cpus = 0;  // that its threads keep to, beside others; 0: all that it may use
  JobMemory memory;
};

class Router;

class Runtime : public alloc::RoomSource {
 public:
  // `allocator` and `residency` must outlive it. Does not touch the coordinator.
  Runtime(ClientConfig config, alloc::CachingAllocator& allocator, alloc::Residency& residency);
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Sets torch's allocator, if that is not ours. Called before anything is allocated. `router` must
  // outlive this object.
  void set_router(Router* router);

  // Connects to the coordinator, or starts one if there is none, and says Hello. Idempotent. After
  // kCancelled the next call tries again. Any other failure is final for the process and makes it
  // unmanaged. errors: kUnavailable with what was tried; kCancelled.
  Status attach();
  [[nodiscard]] bool is_managed() const;

  // errors: kUnavailable (unmanaged), kFailedPrecondition (already registered), kInvalidArgument.
  Status register_job(const RegisterOptions& options);
  // Closes the lease and tells the coordinator that no iterations follow. Idempotent. Memory that
  // was spilled in the gap stays spilled. A caller that wants it back calls hold() first.
  void unregister_job();
  // The same where the process ends: no memory is brought back for a thread that waits in the gate.
  void unregister_at_exit();
  // Gives the process all of its CPUs again, and its own number of threads. Called after
  // unregister_job(), on the thread that iterated, and not while the process ends.
  void regain_cores();

  // The gate. Its fast path is one compare-and-swap. Otherwise it waits up to `timeout` for a lease
  // and for the memory to be back. After kTimedOut the thread keeps its place in line: it calls
  // again, or give_up(). A job that is unmanaged or not registered enters at once.
  // errors: kOutOfMemory (a restore found no room), kFailedPrecondition (another thread iterates,
  // on a GPU), kUnavailable (a coordinator is required, and none can be had).
  Result<GateResult> begin_iteration(Nanos timeout);
  // The fast path of begin_iteration() alone. false: the job has to wait. errors:
  // kFailedPrecondition.
  Result<bool> enter_at_once();
  // The thread that timed out in the gate does not call again (Ctrl-C). All memory is back when it
  // returns.
  void give_up();
  // Called after kTimedOut, before user code (a signal's handler) runs on the main thread. Without
  // ClientConfig::shows_in_gate, memory that was spilled in the gate cannot be used where it was.
  // From here on it can, slowly. That holds for the main thread alone, and not for memory that the
  // device cannot show in the host tier.
  void show_memory();
  // Whether some job is there that may want the lease back inside an iteration. Cheap.
  [[nodiscard]] bool may_be_interrupted() const;
  // Whether the lease is wanted back inside this iteration. Cheap: two loads, mostly one.
  [[nodiscard]] bool is_asked_inside() const;
  // A safepoint. If the lease is wanted back inside the iteration and no memory is on its way,
  // gives the lease up, with all memory in place, and waits up to `timeout` for the next one.
  // kTimedOut: it has none yet; call again. Does nothing on a thread that does not work on the
  // iteration. If the iteration ends on another thread meanwhile, the lease is closed. threads:
  // any.
  GateResult safepoint(Safepoint where, Nanos timeout);
  // Whether this thread works on the iteration under way. It does if it began that iteration. In
  // backward any thread counts, since autograd's own threads work there. Cheap.
  [[nodiscard]] bool is_in_iteration_here(Safepoint where) const;
  // Ends the wait at the safepoint without a lease (Ctrl-C). false: not now, since a stream is
  // captured; the caller waits on.
  [[nodiscard]] bool leave_safepoint();
  // A boundary. Closes the lease here if the coordinator asked for it. No-op outside an iteration.
  void end_iteration(wire::BoundaryKind kind, bool is_optimizer_step);
  // The two halves of it. true: close_at_boundary() is to follow, which may wait for the device.
  [[nodiscard]] bool end_at_once(wire::BoundaryKind kind, bool is_optimizer_step);
  void close_at_boundary();
  // Whether the coordinator has asked for the lease. Cheap.
  [[nodiscard]] bool is_asked() const;
  [[nodiscard]] bool is_in_iteration() const;
  // Whether memory that is used late in an iteration (CachingAllocator::mark_late) has not come
  // back with the lease. Cheap.
  [[nodiscard]] bool has_late() const;
  // Returns when late memory is in place. If it cannot come back it stays reachable where it is,
  // and the log says why. Whoever is about to use all of it waits, since in place it is faster.
  // threads: any.
  void wait_for_late();
  // Leases so far. Cheap.
  [[nodiscard]] std::uint64_t num_leases() const;
  // Gives the lease back now, inside an iteration or in the gap (exception, close, park).
  void close_lease(wire::BoundaryKind kind);
  // Memory in the gap, while the main thread runs user code without a lease. It stays in place
  // until one of the next two says that it may move, or until no iteration began for
  // ClientConfig::idle_spill. Memory that has moved can be used all the same, only slower.
  //
  // From now on all of this job's iterations are marked, and the device is not used outside them.
  void promise_iterations();
  // Until the next iteration memory may move; gives the lease back. pre: outside an iteration.
  void park();
  // All memory is in place when it returns, and stays there until as many let_go(). May wait for
  // room. errors: kOutOfMemory, kIo: nothing is held.
  Status hold();
  void let_go();
  // "job 3 (u1001/gpt) holds the device; ..." from the coordinator; waits at most `timeout`.
  std::string explain(Nanos timeout);

  // Spills all live private memory and restores it, at a boundary: `gpushare verify`. Works without
  // a coordinator too.
  Status spill_and_restore();

  [[nodiscard]] JobStats stats() const;
  // The bytes of the device that this job may have; 0: unmanaged. Takes no lock.
  [[nodiscard]] Bytes share() const;

  // RoomSource: asks the coordinator for room. The first call attaches the job.
  Status grow(const alloc::RoomRequest& request) override;

  void before_fork();
  void after_fork_in_parent();
  // Drops socket, page and eventfd; the child is never a job.
  void after_fork_in_child();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::client
