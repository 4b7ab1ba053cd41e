#include "csrc/sim/simulator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/ready.h"
#include "csrc/sim/event_queue.h"
#include "csrc/sim/report.h"
#include "csrc/sim/scenario.h"
#include "csrc/sim/sim_job.h"

namespace gpushare::sim {
namespace {

// Enough for days of virtual time; a scenario that needs more does not end.
constexpr std::uint64_t kMaxEvents = 20'000'000;

// The daemon's part: takes messages to the coordinator, and carries out what it says.
class Simulation {
 public:
  Simulation(Scenario scenario, std::unique_ptr<sched::Coordinator> coordinator)
      : scenario_(std::move(scenario)), coordinator_(std::move(coordinator)) {
    for (const JobSpec& spec : scenario_.jobs) {
      jobs_.push_back(std::make_unique<SimJob>(
          JobId{jobs_.size() + 1}, spec, scenario_, events_,
          [this](JobId from, wire::JobMessage message) { tell(from, std::move(message)); }));
      events_.after(spec.arrival, [job = jobs_.back().get()] { job->arrive(); });
    }
  }

  Result<std::string> run() {
    for (std::uint64_t n = 0; !events_.empty() && !have_all_ended(); ++n) {
      if (scenario_.until.has_value() && events_.next_at() > *scenario_.until) break;
      if (n == kMaxEvents) {
        return fail(StatusCode::kDeadlineExceeded,
                    fmt::format("the scenario has not ended after {} events, at {}", kMaxEvents,
                                to_string(events_.now())));
      }
      events_.run_next();
    }
    const auto snapshot = coordinator_->snapshot(events_.now());
    return make_report(scenario_, jobs_, snapshot.devices.front().switches, events_.now());
  }

 private:
  [[nodiscard]] bool have_all_ended() const {
    return std::all_of(jobs_.begin(), jobs_.end(),
                       [](const auto& job) { return job->outcome() != SimJob::Outcome::kRunning; });
  }

  SimJob& at(JobId job) { return *jobs_.at(job.value - 1); }

  void tell(JobId from, wire::JobMessage message) {
    events_.after(Nanos{0}, [this, from, message = std::move(message)] {
      carry_out(coordinator_->on_message(from, message, events_.now()));
    });
  }

  void carry_out(const sched::Ready& ready) {
    for (const sched::Outbound& out : ready.messages)
      at(out.to).on_message(out.message);
    for (const sched::PageAction& action : ready.page_actions) {
      if (action.kind == sched::PageAction::Kind::kGrant) {
        at(action.job).on_grant(action.term);
      } else {
        at(action.job).on_ask(action.term);
      }
    }
    set_deadline(ready);
    GS_EXPENSIVE_CHECK(check_host_budget());
  }

  void check_host_budget() const {
    HostBytes sum;
    for (const auto& job : jobs_) {
      if (job->outcome() != SimJob::Outcome::kRunning) continue;
      const wire::Usage usage = job->usage();
      sum += {usage.spilled - usage.host_file, usage.host_file};
    }
    const HostBytes& budget = scenario_.options.host_budget;
    GS_CHECK(sum.ram <= budget.ram, "{} of {}", to_string(sum.ram), to_string(budget.ram));
    GS_CHECK(sum.file <= budget.file, "{} of {}", to_string(sum.file), to_string(budget.file));
  }

  // Each Ready replaces the deadline before it.
  void set_deadline(const sched::Ready& ready) {
    ++deadline_;
    if (!ready.next_deadline.has_value()) return;
    const Nanos delay = std::max(*ready.next_deadline - events_.now(), Nanos{0});
    events_.after(delay, [this, mine = deadline_, observe = ready.observe] {
      if (mine != deadline_) return;
      for (const JobId job : observe) {
        const wire::Observed observed{.of = at(job).address(), .usage = at(job).usage()};
        carry_out(coordinator_->on_message(job, observed, events_.now()));
      }
      carry_out(coordinator_->on_deadline(events_.now()));
    });
  }

  Scenario scenario_;
  EventQueue events_;
  std::unique_ptr<sched::Coordinator> coordinator_;
  std::vector<std::unique_ptr<SimJob>> jobs_;
  std::uint64_t deadline_ = 0;
};

}  // namespace

Result<std::string> run_scenario(std::string_view text) {
  auto scenario = parse_scenario(text);
  if (!scenario.has_value()) return fail(scenario.error());
  auto coordinator = sched::Coordinator::create(scenario->options, Nanos{0});
  if (!coordinator.has_value()) return fail(coordinator.error());
  return Simulation(std::move(*scenario), std::move(*coordinator)).run();
}

}  // namespace gpushare::sim
