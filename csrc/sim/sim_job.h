// One simulated job: it does what a real one does with the same messages, and only its time and its
// bytes are made up.
//
//   kNew -> kStarting -> kWaiting -> kOpening -> kBusy <-> kGap -> kWaiting ... -> kEnded
//                                              kNeeding: in an iteration, waits for room
#pragma once

#include <cstdint>
#include <functional>

#include "csrc/base/units.h"
#include "csrc/sim/event_queue.h"
#include "csrc/sim/scenario.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {

class SimJob {
 public:
  enum class Outcome : std::uint8_t { kRunning, kFinished, kDenied };
  using Tell = std::function<void(JobId, wire::JobMessage)>;

  // `events` must outlive it. `tell` takes messages to the coordinator, not before the call that
  // this job is in returns.
  SimJob(JobId id, const JobSpec& spec, const Scenario& scenario, EventQueue& events, Tell tell);

  void arrive();
  void on_message(const wire::CoordinatorMessage& message);
  // The page: the word became kOpenBusy; the coordinator asks for the lease.
  void on_grant(Term term);
  void on_ask(Term term);

  [[nodiscard]] JobId id() const { return id_; }
  [[nodiscard]] const JobSpec& spec() const { return spec_; }
  [[nodiscard]] wire::Usage usage() const;
  [[nodiscard]] wire::Address address() const;

  [[nodiscard]] Outcome outcome() const { return outcome_; }
  [[nodiscard]] Nanos ended_at() const { return ended_at_; }
  [[nodiscard]] std::uint64_t iterations() const { return iterations_; }
  [[nodiscard]] std::uint64_t leases() const { return leases_; }
  [[nodiscard]] Nanos served() const { return served_; }
  [[nodiscard]] Nanos waited() const { return waited_; }
  [[nodiscard]] Bytes moved() const { return moved_; }

 private:
  enum class Phase : std::uint8_t {
    kNew,
    kStarting,
    kWaiting,
    kOpening,
    kBusy,
    kNeeding,
    kGap,
    kEnded
  };

  void receive(const wire::Welcome& m);
  void receive(const wire::Registered& m);
  void receive(const wire::Grant& m);
  void receive(const wire::Revoke& m);
  void receive(const wire::Denied& m);
  template <typename Other>
  void receive(const Other& /*m*/) {}

  void need(Bytes bytes);
  void want();
  void begin_iteration();
  void end_iteration();
  void end_gap();
  void close();
  void end(Outcome outcome);
  [[nodiscard]] Nanos copy_time(Bytes bytes) const;

  JobId id_;
  JobSpec spec_;
  Bytes bandwidth_;
  Nanos switch_cost_;
  EventQueue& events_;
  Tell tell_;

  Phase phase_ = Phase::kNew;
  Bytes room_;
  Bytes resident_;  // Invariant: resident_ <= room_.
  Bytes spilled_;
  Bytes spilled_file_;  // of them
  std::uint64_t num_needs_ = 0;
  Term term_;
  bool has_lease_ = false;
  bool is_asked_ = false;
  std::uint64_t iterations_ = 0;
  Nanos busy_;
  Nanos stall_;
  Nanos changed_at_;

  Outcome outcome_ = Outcome::kRunning;
  Nanos ended_at_;
  std::uint64_t leases_ = 0;
  Nanos since_;  // when it began to wait, or was granted its lease
  Nanos served_;
  Nanos waited_;
  Bytes moved_;
};

}  // namespace gpushare::sim
