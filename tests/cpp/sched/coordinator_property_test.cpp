// Random messages, honest and not, at random times: the invariants hold, the device is never
// overcommitted, one lease a lane is open at most, and nobody who could run is forgotten.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/sched/coordinator.h"
#include "csrc/sched/policies/policy.h"

#include "tests/cpp/support/sched_any.h"
#include "tests/cpp/support/sched_rows.h"

namespace gpushare::sched::testing {
namespace {

constexpr int kNumJobs = 5;

// Feeds a coordinator and follows from outside what it hands out.
class Fuzz {
 public:
  Fuzz() {
    const CoordinatorOptions options = any_options();
    most_lanes_ = std::max(options.num_lanes, options.pack_lanes);
    is_with_needs_ = *rc::gen::arbitrary<bool>();
    coordinator_ = std::move(*Coordinator::create(options, now_));
  }

  void step() {
    now_ += millis(*rc::gen::weightedElement<int>({{5, 0}, {5, 20}, {2, 300}, {1, 4000}}));
    begun_.clear();
    const int what = any(0, 12);
    if (what < 2) {
      follow(coordinator_->on_deadline(now_));
    } else if (what == 2) {
      change();
    } else {
      const JobId from{static_cast<std::uint64_t>(any(1, kNumJobs + 1))};
      feed(from, any_message(from));
    }
    check();
  }

 private:
  wire::Address address(JobId job) {
    wire::Address of;
    of.job = any(0, 30) == 0 ? JobId{job.value + 1} : job;
    return of;
  }

  // Mostly what a job in this state would say: refused messages find little.
  wire::JobMessage any_message(JobId job) {
    const wire::Address of = address(job);
    if (any(0, 5) != 0) {
      const std::string state = state_of(rows(), job);
      if (state.empty() || state == "lost") return any_hello(job);
      if (state == "starting") return any_register(of);
    }
    switch (any(0, 19)) {
      case 16:
      case 17:
      case 18: return any_lane_changed(of);
      case 0: return any_hello(job);
      case 1: return any_register(of);
      case 2:
      case 3:
        if (!is_with_needs_) return wire::Wanted{of, any_usage()};
        if (any(0, 5) != 0) ++num_needs_;  // else the last one again
        return wire::Need{of, num_needs_, any_bytes(), any_bytes(), any(0, 3) == 0, any_bytes()};
      case 4:
      case 5:
      case 6: return any_released(of);
      case 7:
      case 8:
      case 9: return wire::Closed{of, terms_[job], any_usage()};
      case 10: return wire::Closed{of, Term{static_cast<std::uint64_t>(any(0, 4))}, any_usage()};
      case 11: return wire::GaveUp{of};
      case 12: return wire::Observed{of, any_usage()};
      case 13: return any_end(of);
      default: return wire::Wanted{of, any_usage()};
    }
  }

  // What people do, right or wrong.
  void change() {
    if (any(0, 5) == 0) return follow(*coordinator_->set_policy(any_policy(), now_));
    const JobId job{static_cast<std::uint64_t>(any(1, kNumJobs + 2))};
    if (any(0, 3) == 0) return follow(coordinator_->set_suspended(job, any(0, 3) != 0, now_));
    const wire::Changes changes = any_changes();
    const Result<Ready> ready = coordinator_->set(job, changes, {.may_change_all = true}, now_);
    if (ready.has_value()) {
      for (const JobId each : together_with(rows(), job)) {
        if (changes.is_paused.value_or(false)) paused_.insert(each);
        if (!changes.is_paused.value_or(true)) paused_.erase(each);
      }
      follow(*ready);
    }
  }

  DeviceRow rows() const { return coordinator_->snapshot(now_).devices.front(); }

  // No more than is free, so that the sum of room stays within the capacity.
  wire::JobMessage any_hello(JobId job) {
    wire::Hello hello;
    hello.pid = static_cast<std::int32_t>(job.value);
    hello.uid = static_cast<std::uint32_t>(job.value % 3);
    const auto device = rows();
    hello.resident = std::min(any_bytes(), std::max(device.free, Bytes{-1}));
    if (any(0, 2) == 0) hello.device_total = mib(1600);
    if (any(0, 2) == 0) hello.device_piece = mib(16);
    hello.device_free = std::min(mib(any(0, 1600)), hello.device_total);
    hello.lane_epoch = static_cast<std::uint64_t>(any(0, 2));
    hello.lane_slots = any_slots();
    hello.held_term = any(0, 2) == 0 ? Term{0} : terms_[job];
    hello.of.gang = any_gang();
    return hello;
  }

  // Mostly what the state allows: what it has, it may give; what was told, it may keep.
  wire::JobMessage any_lane_changed(const wire::Address& of) {
    wire::LaneChanged changed;
    changed.of = of;
    changed.n = heard_[of.job] + (any(0, 20) == 0 ? 2U : 1U);
    changed.given = mib(any(0, 20) * 2);
    changed.num_chunks = static_cast<std::uint64_t>(any(0, 40));
    std::vector<std::uint32_t>& told = told_[of.job];
    if (any(0, 3) == 0 && !told.empty()) {
      changed.donated = {told.back()};
      kept_[of.job].push_back(told.back());
      told.pop_back();
    } else if (any(0, 3) == 0 && !kept_[of.job].empty()) {
      changed.returned = {kept_[of.job].back()};
      kept_[of.job].pop_back();
    } else if (any(0, 10) == 0) {
      changed.donated = any_slots();
      changed.returned = any_slots();
    }
    return changed;
  }

  // Mostly an answer to what was asked.
  wire::JobMessage any_released(const wire::Address& of) {
    const auto revoke = revokes_.find(of.job);
    if (revoke == revokes_.end()) {
      return wire::Released{.of = of,
                            .n = static_cast<std::uint64_t>(any(0, 9)),
                            .bytes = any_bytes(),
                            .dropped = {},
                            .spilled = any_bytes(),
                            .reason = ""};
    }
    const Bytes bytes = *rc::gen::element(Bytes{0}, any_bytes(), revoke->second.bytes);
    return wire::Released{.of = of,
                          .n = revoke->second.n,
                          .bytes = bytes,
                          .dropped = {},
                          .spilled = any_bytes(),
                          .spilled_file = any_bytes(),
                          .spilled_late = any_bytes(),
                          .unplaced = any_bytes(),
                          .more = any(0, 3) == 0,
                          .with_lease = any(0, 3) == 0,
                          .need_n = static_cast<std::uint64_t>(any(0, 3)),
                          .held = any(0, 3) == 0,
                          .reason = ""};
  }

  void feed(JobId from, const wire::JobMessage& message) {
    // Waiting until a Revoke is answered ends with its answer, and with the job's connection.
    const std::map<std::uint32_t, Bytes> held = held_by_users();
    const Ready ready = coordinator_->on_message(from, message, now_);
    // A job may come with more than its user may have: then he gets nothing.
    if (!std::holds_alternative<wire::Hello>(message)) check_user_limits(held);
    check_interrupted(from, ready);
    if (!was_refused(ready)) {
      check_answered_at_once(from, message, ready);
      forget_revoke(from, message);
      note_inside(from, message);
      // Its record is gone: whoever comes under this number starts anew.
      if (std::holds_alternative<wire::Gone>(message)) terms_.erase(from);
      const bool has_ended = std::holds_alternative<wire::Gone>(message) ||
                             std::holds_alternative<wire::Unregister>(message);
      if (has_ended) paused_.erase(from);
      if (std::holds_alternative<wire::Hello>(message)) heard_[from] = 0;
      if (std::holds_alternative<wire::LaneChanged>(message)) ++heard_[from];
    }
    follow(ready);
  }

  std::map<std::uint32_t, Bytes> held_by_users() {
    std::map<std::uint32_t, Bytes> held;
    const DeviceRow device = rows();
    for (const UserRow& user : device.users)
      held[user.uid] = user.memory;
    return held;
  }

  void check_user_limits(const std::map<std::uint32_t, Bytes>& before) {
    const DeviceRow device = rows();
    for (const UserRow& user : device.users) {
      if (user.memory_limit == Bytes{0} || user.is_elastic) continue;
      const auto held = before.find(user.uid);
      const Bytes was = held == before.end() ? Bytes{0} : held->second;
      RC_ASSERT(user.memory <= std::max(user.memory_limit, was));
    }
  }

  static void check_answered_at_once(JobId from,
                                     const wire::JobMessage& message,
                                     const Ready& ready) {
    const auto* need = std::get_if<wire::Need>(&message);
    if (need == nullptr || !need->only_free) return;
    RC_ASSERT(std::count_if(ready.messages.begin(), ready.messages.end(), [&](const auto& out) {
                const auto* grant = std::get_if<wire::Grant>(&out.message);
                const auto* denied = std::get_if<wire::Denied>(&out.message);
                return out.to == from && ((grant != nullptr && grant->need_n == need->n) ||
                                          (denied != nullptr && denied->n == need->n));
              }) == 1);
  }

  // It was asked there by this coordinator, or perhaps by the one before; any page may say so.
  bool may_be_inside(JobId from) const {
    return asked_inside_.contains(from) || new_.contains(from);
  }

  void check_interrupted(JobId from, const Ready& ready) {
    for (const Decision& decision : ready.decisions)
      RC_ASSERT(decision.what != "interrupted" || may_be_inside(from));
  }

  void note_inside(JobId from, const wire::JobMessage& message) {
    const bool stays = inside_.erase(from) > 0 || may_be_inside(from);
    // Ranks stop at boundaries alone.
    if (is_inside(message) && stays && gang_of(rows(), from).empty()) inside_.insert(from);
    const auto* closed = std::get_if<wire::Closed>(&message);
    const bool ends_lease = std::holds_alternative<wire::Wanted>(message) ||
                            std::holds_alternative<wire::GaveUp>(message) ||
                            std::holds_alternative<wire::Unregister>(message) ||
                            std::holds_alternative<wire::Hello>(message) ||
                            std::holds_alternative<wire::Gone>(message) ||
                            (closed != nullptr && closed->term == terms_[from]);
    if (ends_lease) asked_inside_.erase(from);
    if (std::holds_alternative<wire::Wanted>(message)) new_.erase(from);
    if (std::holds_alternative<wire::Hello>(message)) new_.insert(from);
  }

  void forget_revoke(JobId from, const wire::JobMessage& message) {
    const auto revoke = revokes_.find(from);
    if (revoke == revokes_.end()) return;
    const auto* released = std::get_if<wire::Released>(&message);
    const bool is_answer =
        released != nullptr && released->n == revoke->second.n && !released->more;
    const bool has_ended = std::holds_alternative<wire::Lost>(message) ||
                           std::holds_alternative<wire::Gone>(message) ||
                           std::holds_alternative<wire::Hello>(message);
    if (is_answer || has_ended) revokes_.erase(revoke);
  }

  void follow(const Ready& ready) {
    for (const Outbound& out : ready.messages) {
      if (const auto* table = std::get_if<wire::LaneTable>(&out.message)) {
        told_[out.to] = table->slots;
      }
      if (const auto* revoke = std::get_if<wire::Revoke>(&out.message)) {
        RC_ASSERT(revoke->bytes > Bytes{0});
        RC_ASSERT(!inside_.contains(out.to));
        RC_ASSERT(state_of(rows(), out.to) != "suspended");
        RC_ASSERT(revokes_.emplace(out.to, *revoke).second);
      }
      if (std::holds_alternative<wire::Grant>(out.message)) {
        RC_ASSERT(!revokes_.contains(out.to));
      }
    }
    const DeviceRow device = rows();
    std::set<JobId> granted;
    std::set<std::string> units;
    for (const PageAction& action : ready.page_actions) {
      if (action.kind == PageAction::Kind::kAskInside) asked_inside_.insert(action.job);
      if (action.kind != PageAction::Kind::kGrant) continue;
      // A rank may have to end an iteration with the others.
      RC_ASSERT(!paused_.contains(action.job) || !gang_of(device, action.job).empty());
      RC_ASSERT(state_of(device, action.job) != "suspended");
      RC_ASSERT(granted.insert(action.job).second);
      units.insert(unit_of(device, action.job));
      RC_ASSERT(units.size() <= most_lanes_ + kNumJobs);
      RC_ASSERT(action.term > terms_[action.job]);
      terms_[action.job] = action.term;
      inside_.erase(action.job);
      asked_inside_.erase(action.job);
      new_.erase(action.job);
    }
    for (const Decision& decision : ready.decisions) {
      const bool goes_on = decision.reason.find("inside its iteration") != std::string::npos ||
                           decision.reason.starts_with("along with");
      if (decision.what == "grant" && !goes_on) begun_.insert(decision.job);
    }
    deadline_ = ready.next_deadline;
  }

  void check() {
    coordinator_->check_invariants();
    const DeviceRow device = rows();
    RC_ASSERT(device.lanes.size() <= most_lanes_ + kNumJobs);
    Bytes sum;
    for (const JobRow& job : device.jobs) {
      sum += job.room;
      RC_ASSERT(!(job.is_at_share_limit && begun_.contains(job.who.of.job)));
    }
    for (const LaneRow& lane : device.lanes)
      sum += lane.pool;
    RC_ASSERT(sum + device.free == device.capacity);
    RC_ASSERT(sum <= device.capacity + device.withheld);
    for (const LaneRow& lane : device.lanes)
      check_lane(device, lane);
  }

  // Nobody of its gang owes an answer, has used up its time, or is suspended.
  bool may_run(const DeviceRow& device, const JobRow& job) const {
    return std::none_of(device.jobs.begin(), device.jobs.end(), [&](const JobRow& other) {
      const bool is_kept = other.is_at_share_limit || revokes_.contains(other.who.of.job) ||
                           other.state == "suspended";
      return is_kept && unit_of(other) == unit_of(job);
    });
  }

  void check_lane(const DeviceRow& device, const LaneRow& lane) {
    std::set<std::string> running;  // a gang counts once
    bool is_anybody_waiting = false, does_everybody_fit = true, is_unsettled = false;
    for (const JobRow& job : device.jobs) {
      // Until all it changed was heard, or an interrupted job is back, nobody is granted the lane.
      if (job.in_lane == lane.lane || sharing_of(device.policy).in_one_line)
        is_unsettled |= job.usage.lane.changes > heard_[job.who.of.job];
      if (job.in_lane != lane.lane) continue;
      is_unsettled |= job.state == "idle" && job.reason.starts_with("interrupted: ");
      const bool is_in_gang = !job.who.of.gang.empty();
      if (job.state == "running" || job.state == "closing") running.insert(unit_of(job));
      if (job.state != "waiting") continue;
      // It runs, or is to, with others of its gang, in whatever lane they are.
      if (is_in_gang && !is_any_held(device) && may_run(device, job)) {
        RC_ASSERT(deadline_.has_value());
      }
      if (!is_in_gang && job.is_at_share_limit) continue;
      does_everybody_fit &= fits(device, job);
      // A job that owes an answer to a Revoke is passed over until it gives it.
      if (!is_in_gang && !revokes_.contains(job.who.of.job)) is_anybody_waiting = true;
    }
    RC_ASSERT(running.size() <= 1U);
    // Who waits for a free lane is granted it, or somebody was asked to give, or there is a time at
    // which waiting ends.
    if (lane.holder != JobId{0} || !is_anybody_waiting) return;
    RC_ASSERT(deadline_.has_value());
    // What is free may be another lane's, which is short of it.
    const bool is_alone_short = std::all_of(
        device.lanes.begin(), device.lanes.end(),
        [&](const LaneRow& other) { return other.next == JobId{0} || other.lane == lane.lane; });
    // Under `pack` those who wait may be kept from those who run, not from a device without any.
    const bool is_kept = sharing_of(device.policy).in_one_line && is_any_held(device);
    is_unsettled |= *deadline_ < now_;  // the coordinator was to be called then, and was not
    if (!is_with_needs_ && !is_unsettled && !is_kept && revokes_.empty() && is_alone_short) {
      RC_ASSERT(!does_everybody_fit);
    }
  }

  std::unique_ptr<Coordinator> coordinator_;
  Nanos now_ = seconds(100);
  bool is_with_needs_ = false;
  std::uint32_t most_lanes_ = 1;  // under `pack`
  std::uint64_t num_needs_ = 0;
  std::set<JobId> paused_, inside_, asked_inside_;
  std::set<JobId> begun_;  // granted in the last step, and not inside an iteration
  std::set<JobId> new_;    // said Hello, and neither wanted a lease nor was granted one since
  std::map<JobId, Term> terms_;
  std::map<JobId, wire::Revoke> revokes_;
  std::map<JobId, std::uint64_t> heard_;
  std::map<JobId, std::vector<std::uint32_t>> told_, kept_;
  std::optional<Nanos> deadline_;
};

TEST(CoordinatorProperty, HoldsWhateverIsSaid) {
  EXPECT_TRUE(rc::check("invariants hold, and nobody is forgotten", [] {
    Fuzz fuzz;
    const int num_steps = any(0, 150);
    for (int i = 0; i < num_steps; ++i)
      fuzz.step();
  }));
}

}  // namespace
}  // namespace gpushare::sched::testing
