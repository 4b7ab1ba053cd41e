// The runtime's parts and its one lock.
//
// Its state is kept by objects, each in a file of its own, whose header has its invariants: a noun
// names the file (gate_state.h, moves.h). None that the lock guards waits or knows another one. The
// runtime's functions join them. They are spread by what they are about: attach.cpp,
// reconnect.cpp, registering.cpp, lease_gate.cpp, lease_close.cpp, safepoint.cpp, growing.cpp,
// room.cpp, restoring.cpp, pacing.cpp, gap_memory.cpp, routing.cpp, lane.cpp, overflow.cpp,
// client_thread.cpp, runtime_stats.cpp, runtime_fork.cpp.
//
// Lock order: mu_, then the router's and torch's, then the allocator's. A thread that waits for a
// copy, for room or on the futex lets mu_ go; `moves_` keeps two copies apart meanwhile. The device
// is waited for before mu_ is taken (drain). A close under the lock then waits only for what was
// queued in between. After the loss of a connection a close may follow without that, and waits for
// all of it.
//
// The lease word. wire::try_begin and wire::try_end run without the lock, on the page that the main
// thread sees. Every other change from this side (want, give up, close) is made under mu_. So
// whoever holds mu_ and sees kClosing may finish the close, and the client thread can change pages
// (carry_over.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/unique_fd.h"
#include "csrc/client/cpu/iteration_cores.h"
#include "csrc/client/gate/fast_state.h"
#include "csrc/client/gate/gate_state.h"
#include "csrc/client/gate/idle_rule.h"
#include "csrc/client/gate/iteration_counters.h"
#include "csrc/client/gate/lease_times.h"
#include "csrc/client/link/connection.h"
#include "csrc/client/link/coordinator_link.h"
#include "csrc/client/link/registration.h"
#include "csrc/client/link/wakeable_thread.h"
#include "csrc/client/memory/gap_reasons.h"
#include "csrc/client/memory/holds.h"
#include "csrc/client/memory/lane_member.h"
#include "csrc/client/memory/moves.h"
#include "csrc/client/memory/need_table.h"
#include "csrc/client/memory/overflow_request.h"
#include "csrc/client/memory/pace.h"
#include "csrc/client/memory/router.h"
#include "csrc/client/memory/stopped_threads.h"
#include "csrc/client/memory/usage_figures.h"
#include "csrc/client/runtime.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

class Runtime::Impl {
 public:
  Impl(ClientConfig config, alloc::CachingAllocator& allocator, alloc::Residency& residency);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Ends the client thread. false: it cannot be waited for (a forked child has none, an ending
  // process may have stopped it anywhere); the object must then stay where it is.
  bool stop() GS_EXCLUDES(mu_);

  Status attach() GS_EXCLUDES(mu_);
  bool is_managed() GS_EXCLUDES(mu_);
  Status register_job(const RegisterOptions& options) GS_EXCLUDES(mu_);
  void unregister_job() GS_EXCLUDES(mu_);
  void unregister_at_exit() GS_EXCLUDES(mu_);
  void regain_cores() { settle_cores(nullptr); }
  Result<bool> enter_at_once() GS_EXCLUDES(mu_);
  Result<GateResult> begin_iteration(Nanos timeout) GS_EXCLUDES(mu_);
  void give_up() GS_EXCLUDES(mu_);
  void show_memory() GS_EXCLUDES(mu_);
  [[nodiscard]] bool may_be_interrupted() const;
  [[nodiscard]] bool is_asked_inside() const;
  [[nodiscard]] bool is_in_iteration_here(Safepoint where) const;
  GateResult safepoint(Safepoint where, Nanos timeout) GS_EXCLUDES(mu_);
  bool leave_safepoint() GS_EXCLUDES(mu_);
  bool end_at_once(wire::BoundaryKind kind, bool is_optimizer_step) GS_EXCLUDES(mu_);
  void close_at_boundary() GS_EXCLUDES(mu_);
  [[nodiscard]] bool is_asked() const;
  [[nodiscard]] bool is_in_iteration() const { return counters_.is_in_iteration(); }
  [[nodiscard]] bool has_late() const { return fast_.has_late(); }
  void wait_for_late() GS_EXCLUDES(mu_);
  [[nodiscard]] std::uint64_t num_leases() const { return fast_.num_leases(); }
  void close_lease(wire::BoundaryKind kind) GS_EXCLUDES(mu_);
  void set_router(Router* router) { router_ = router; }
  void promise_iterations() GS_EXCLUDES(mu_);
  void park_in_gap() GS_EXCLUDES(mu_);
  Status hold() GS_EXCLUDES(mu_);
  void let_go() GS_EXCLUDES(mu_);
  std::string explain(Nanos timeout) GS_EXCLUDES(mu_);
  Status spill_and_restore() GS_EXCLUDES(mu_);
  JobStats stats() GS_EXCLUDES(mu_);
  [[nodiscard]] Bytes share() const { return figures_.share(); }
  Status grow(const alloc::RoomRequest& request) GS_EXCLUDES(mu_);
  void before_fork() GS_NO_THREAD_SAFETY_ANALYSIS;
  void after_fork_in_parent() GS_NO_THREAD_SAFETY_ANALYSIS;
  void after_fork_in_child() GS_NO_THREAD_SAFETY_ANALYSIS;

 private:
  static constexpr Nanos kSignalCheck = millis(50);
  static constexpr auto kNoAnswer =
      "the coordinator does not answer. Is it stopped (SIGSTOP)? See: gpushare coordinator log";

  // The result of one step in the gate. kAgain: something has changed, look again.
  enum class GateStep : std::uint8_t { kEntered, kTimedOut, kAgain };
  struct Greeting {
    Connection connection;
    wire::Welcome welcome;
  };

  // attach.cpp
  Status attach_now() GS_EXCLUDES(mu_);
  wire::Hello make_hello() GS_REQUIRES(mu_);
  void configure_host_tier(const wire::Welcome& welcome) const GS_EXCLUDES(mu_);
  Result<Greeting> find_and_greet(Nanos patience) GS_EXCLUDES(mu_);
  Result<Greeting> say_hello(UniqueFd socket) GS_EXCLUDES(mu_);
  // A waiting thread asks this often; it may take the GIL.
  [[nodiscard]] bool is_interrupted() const GS_EXCLUDES(mu_);
  void adopt(Greeting greeting) GS_REQUIRES(mu_);
  void go_unmanaged(const std::string& reason) GS_REQUIRES(mu_);
  bool send(const wire::JobMessage& message) GS_REQUIRES(mu_);

  // reconnect.cpp: on the client thread
  void lose_connection(const Status& why) GS_EXCLUDES(mu_);
  bool reconnect() GS_EXCLUDES(mu_);
  bool pause_before_reconnect() GS_EXCLUDES(mu_);
  Status find_and_adopt() GS_EXCLUDES(mu_);

  // registering.cpp
  wire::Register make_register() GS_REQUIRES(mu_);
  Status wait_registered() GS_REQUIRES(mu_);
  void forget_registration() GS_REQUIRES(mu_);
  [[nodiscard]] bool is_interrupted_unlocked() GS_REQUIRES(mu_);
  void on_registered(std::vector<UniqueFd> fds) GS_EXCLUDES(mu_);
  Status install_page(std::vector<UniqueFd> fds) GS_REQUIRES(mu_);
  wire::LeasePage* page() GS_REQUIRES(mu_) { return fast_.page_under_lock(); }

  // lease_gate.cpp: on the main thread
  [[nodiscard]] bool is_anothers_iteration() const;
  void enter(wire::LeasePage* page);
  void settle_cores(const wire::LeasePage* page) GS_EXCLUDES(mu_);
  Result<GateResult> begin_slow(Nanos deadline) GS_EXCLUDES(mu_);
  void show_spilled() GS_REQUIRES(mu_);
  Result<GateResult> pass_gate(Nanos deadline) GS_REQUIRES(mu_);
  [[nodiscard]] bool park(wire::LeasePage& page) GS_REQUIRES(mu_);
  void unpark() GS_REQUIRES(mu_);
  bool wait_for_word(wire::LeasePage& page, wire::LeaseWord word, Nanos deadline) GS_REQUIRES(mu_);
  bool wait_until_granted(wire::LeasePage* page, Nanos deadline) GS_REQUIRES(mu_);
  Result<GateStep> step_gate(Nanos deadline) GS_REQUIRES(mu_);
  Result<GateStep> open(Nanos deadline) GS_REQUIRES(mu_);
  GateStep give_back_unopened() GS_REQUIRES(mu_);
  void note_opened(Nanos granted) GS_REQUIRES(mu_);

  // safepoint.cpp
  [[nodiscard]] bool may_stop_inside() GS_REQUIRES(mu_);
  [[nodiscard]] bool stop_inside() GS_REQUIRES(mu_);
  [[nodiscard]] bool is_worth_draining(Safepoint where) GS_EXCLUDES(mu_);
  void go_on_inside(Nanos since) GS_REQUIRES(mu_);
  [[nodiscard]] bool is_left_inside() GS_REQUIRES(mu_);
  bool break_off() GS_REQUIRES(mu_);
  void say_inside(bool is_inside) GS_REQUIRES(mu_);

  // restoring.cpp
  Status restore_all() GS_REQUIRES(mu_);
  Status restore_for_iteration() GS_REQUIRES(mu_);
  Status restore_with(Status (alloc::Residency::*restore)()) GS_REQUIRES(mu_);
  void note_moved() GS_REQUIRES(mu_);
  void expect_late() GS_REQUIRES(mu_);
  void forget_late() GS_REQUIRES(mu_);
  Bytes room_to_come() GS_REQUIRES(mu_);
  void restore_what_follows() GS_REQUIRES(mu_);
  std::optional<Nanos> restore_in_background() GS_EXCLUDES(mu_);
  [[nodiscard]] bool is_restoring_of_use() GS_REQUIRES(mu_);
  Bytes most_ahead() GS_REQUIRES(mu_);
  bool has_late_for_others() GS_EXCLUDES(mu_);

  // pacing.cpp
  Bytes transfer_rate() GS_REQUIRES(mu_);
  bool is_limited() GS_EXCLUDES(mu_);
  Pace::Turn next_turn(Bytes most) GS_REQUIRES(mu_);
  void say_held_back(bool is_held_back) GS_REQUIRES(mu_);
  Bytes wait_for_turn(Bytes most) GS_EXCLUDES(mu_);

  // lease_close.cpp
  static bool end_on(wire::LeasePage& page);
  [[nodiscard]] bool close_gate() GS_REQUIRES(mu_);
  bool finish_closing(wire::LeasePage& page) GS_REQUIRES(mu_);
  void retry_closing() GS_EXCLUDES(mu_);
  void close_if_open(wire::BoundaryKind kind) GS_REQUIRES(mu_);
  void give_up_parked() GS_REQUIRES(mu_);
  void ring() GS_REQUIRES(mu_);

  // lane.cpp
  void stay_out_of_lane() GS_REQUIRES(mu_);
  void close_lane() GS_REQUIRES(mu_);
  Status open_lane() GS_REQUIRES(mu_);
  void on_lane_table(wire::LaneTable table, std::vector<UniqueFd> fds) GS_EXCLUDES(mu_);
  void tell_lane(alloc::LaneChange change) GS_REQUIRES(mu_);
  void need_as_room(Bytes left) GS_REQUIRES(mu_);
  void disconnect_lane() GS_REQUIRES(mu_);

  // routing.cpp
  void drain() const GS_EXCLUDES(mu_);
  Status route_outside() GS_REQUIRES(mu_);
  void route_private() GS_REQUIRES(mu_);

  // gap_memory.cpp
  [[nodiscard]] bool may_move_in_gap() GS_REQUIRES(mu_);
  [[nodiscard]] bool is_movable_in_gap() GS_REQUIRES(mu_);
  void say_movable() GS_REQUIRES(mu_);
  Status restore_and_hold() GS_REQUIRES(mu_);
  void watch_idle_gap() GS_EXCLUDES(mu_);
  [[nodiscard]] bool may_move_without_page() GS_REQUIRES(mu_);
  bool start_moving_without_page() GS_REQUIRES(mu_);

  // growing.cpp
  Status wait_for_room(const alloc::RoomRequest& request, bool is_unmovable) GS_REQUIRES(mu_);
  Status wait_stopped(std::uint64_t need, Bytes bytes, bool is_unmovable) GS_REQUIRES(mu_);
  Status ask_for_free_room(const alloc::RoomRequest& request) GS_REQUIRES(mu_);
  Status wait_for_answer(std::uint64_t need, Bytes bytes) GS_REQUIRES(mu_);
  bool has_answering_coordinator() GS_REQUIRES(mu_);

  // room.cpp
  void on_grant(const wire::Grant& grant) GS_EXCLUDES(mu_);
  void on_revoke(const wire::Revoke& revoke) GS_EXCLUDES(mu_);
  alloc::ReleaseOutcome release_in_parts(const wire::Revoke& revoke, bool is_parked, bool may_spill)
      GS_EXCLUDES(mu_);
  std::uint64_t note_released(const alloc::ReleaseOutcome& part, bool is_parked) GS_REQUIRES(mu_);
  // The parts of an answer to a Revoke that are the same for all its messages.
  struct AnswerKind {
    bool more = false;
    bool with_lease = false;
    std::uint64_t need = 0;
    bool held = false;
  };
  void answer(const wire::Revoke& revoke,
              const alloc::ReleaseOutcome& outcome,
              const AnswerKind& kind) GS_REQUIRES(mu_);
  [[nodiscard]] bool may_give_amid_restore() GS_REQUIRES(mu_);
  [[nodiscard]] bool is_stopped_for_room() GS_REQUIRES(mu_);
  void drain_if_stopped() GS_EXCLUDES(mu_);
  void restore_before_going_on() GS_REQUIRES(mu_);
  bool start_restoring(Nanos deadline) GS_REQUIRES(mu_);
  void stop_moving() GS_REQUIRES(mu_);

  // overflow.cpp
  void move_overflow_in() GS_REQUIRES(mu_);
  void watch_overflow() GS_EXCLUDES(mu_);

  // client_thread.cpp
  void run() GS_EXCLUDES(mu_);
  bool receive_all() GS_EXCLUDES(mu_);
  void dispatch(Connection::Received received) GS_EXCLUDES(mu_);
  void on_denied(const wire::Denied& denied) GS_EXCLUDES(mu_);
  void on_close(const wire::Close& close) GS_EXCLUDES(mu_);
  void on_changed(const wire::Changed& changed) GS_EXCLUDES(mu_);
  void on_explained(const wire::Explained& explained) GS_EXCLUDES(mu_);
  void on_refused(const wire::Refused& refused) GS_EXCLUDES(mu_);
  bool watch_idle(IdleRule& rule) GS_EXCLUDES(mu_);
  IdleObservation observe_lease() GS_EXCLUDES(mu_);
  IdleObservation look_at_lease() GS_EXCLUDES(mu_);

  // runtime_fork.cpp
  void bring_back_for_child() GS_REQUIRES(mu_);

  // runtime_stats.cpp
  void publish_usage(wire::LeasePage& page) GS_REQUIRES(mu_);
  [[nodiscard]] std::optional<DeviceMemory> device_memory() const;
  void note_share() GS_REQUIRES(mu_);
  JobMemory memory_figures(const alloc::MemoryStats& allocated) GS_REQUIRES(mu_);
  Bytes needed_room(const alloc::MemoryStats& memory) GS_REQUIRES(mu_);
  [[nodiscard]] Bytes live_bytes(const alloc::MemoryStats& memory) const;
  void refresh_usage(wire::LeasePage& page, Nanos now);

  const ClientConfig config_;
  alloc::CachingAllocator& allocator_;
  alloc::Residency& residency_;

  Router* router_ = nullptr;  // set before any other thread is there
  WakeableThread thread_;     // the client thread; started by the attaching thread

  Mutex mu_;
  CondVar changed_;  // anything guarded that somebody waits for

  // The coordinator, and what it knows of this job.
  CoordinatorLink link_ GS_GUARDED_BY(mu_);
  Registration registration_ GS_GUARDED_BY(mu_);
  NeedTable needs_ GS_GUARDED_BY(mu_);
  Bytes room_ GS_GUARDED_BY(mu_);  // as the coordinator's ledger has it

  // The gate.
  GateState gate_ GS_GUARDED_BY(mu_);
  LeaseTimes times_ GS_GUARDED_BY(mu_);

  // Memory: what moves, and what keeps it in place.
  Moves moves_ GS_GUARDED_BY(mu_);
  Pace pace_ GS_GUARDED_BY(mu_){allocator_.most_piece()};
  Holds holds_ GS_GUARDED_BY(mu_);
  StoppedThreads stopped_ GS_GUARDED_BY(mu_);
  GapReasons gap_reasons_ GS_GUARDED_BY(mu_);
  OverflowRequest overflow_request_ GS_GUARDED_BY(mu_);
  LaneMember lane_ GS_GUARDED_BY(mu_);

  // Read, and partly written, without the lock. Each header says by whom.
  FastState fast_;
  IterationCounters counters_;
  IterationCores cores_{config_.worker_threads};
  UsageFigures figures_;
};

}  // namespace gpushare::client
