// What a decision of the coordinator costs, by the number of jobs that wait.
//
//   decision_bench NUM_JOBS [POLICY [PART]]
//
// PART of the jobs fit on the device at a time (1: all), and all want a lease. A turn is: the
// holder closes its lease, and wants another; the next job is granted one, if need be after others
// have given it their room. Prints one line of JSON: the median and the 99th percentile of the
// microseconds of each message, and the process's resident memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/coordinator.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {
namespace {

constexpr int kNumTurns = 2000;
constexpr int kNumWarmUp = 200;
const Bytes kLive = mib(100);
const Bytes kPeak = mib(300);

// The microseconds that each message took.
struct Samples {
  std::vector<double> closes, wants, released;
};

class Turns {
 public:
  Turns(std::uint64_t num_jobs, const std::string& policy, double part) {
    CoordinatorOptions options;
    const auto num_fitting = static_cast<std::int64_t>(static_cast<double>(num_jobs) * part);
    options.capacity = part < 1 ? kPeak * std::max<std::int64_t>(num_fitting, 2) : gib(1 << 20);
    options.host_budget = {gib(1 << 20), Bytes{0}};
    options.policy = policy;
    auto made = Coordinator::create(options, now_);
    if (!made) {
      fmt::print(stderr, "{}\n", made.error().to_string());
      std::exit(1);
    }
    coordinator_ = std::move(*made);
    jobs_.resize(num_jobs + 1);
    for (std::uint64_t id = 1; id <= num_jobs; ++id)
      join(JobId{id});
    for (std::uint64_t id = 1; id <= num_jobs; ++id)
      want(JobId{id});
  }

  void turn() {
    if (holder_ == JobId{0}) {
      fmt::print(stderr, "nobody was granted a lease\n");
      std::exit(1);
    }
    const JobId job = std::exchange(holder_, JobId{0});
    now_ += millis(300);
    State& state = jobs_[job.value];
    state.iterations += 3;
    state.resident = kLive;
    state.spilled = Bytes{0};
    samples_.closes.push_back(
        tell(job, wire::Closed{.of = address(job), .term = state.term, .usage = usage(job)}));
    want(job);
  }
  void forget_samples() { samples_ = {}; }
  [[nodiscard]] const Samples& samples() const { return samples_; }

 private:
  struct State {
    Term term;
    std::uint64_t iterations = 0;
    Bytes room, resident, spilled;
  };

  static wire::Address address(JobId job) {
    wire::Address of;
    of.job = job;
    return of;
  }

  void join(JobId job) {
    wire::Hello hello;
    hello.pid = static_cast<std::int32_t>(job.value);
    tell(job, hello);
    wire::Register wish;
    wish.of = address(job);
    wish.name = fmt::format("job{}", job.value);
    wish.settings.weight = 1.0 + static_cast<double>(job.value % 4);
    wish.settings.iterations_total = 1'000'000 + job.value;
    jobs_[job.value].spilled = kLive;
    tell(job, wish);
  }

  void want(JobId job) {
    now_ += micros(10);
    samples_.wants.push_back(tell(job, wire::Wanted{.of = address(job), .usage = usage(job)}));
  }

  // A job gives unused room first, then live memory by a copy.
  void give(JobId job, const wire::Revoke& revoke) {
    State& state = jobs_[job.value];
    const Bytes unused = std::min(revoke.bytes, state.room - state.resident);
    const Bytes spilled = std::min(revoke.bytes - unused, state.resident);
    state.resident -= spilled;
    state.spilled += spilled;
    state.room -= unused + spilled;
    now_ += micros(100);
    samples_.released.push_back(tell(job, wire::Released{.of = address(job),
                                                         .n = revoke.n,
                                                         .bytes = unused + spilled,
                                                         .dropped = {},
                                                         .spilled = spilled,
                                                         .reason = ""}));
  }

  [[nodiscard]] wire::Usage usage(JobId job) const {
    const State& state = jobs_[job.value];
    wire::Usage usage;
    usage.iterations = 10 + state.iterations;
    usage.busy = millis(100) * static_cast<std::int64_t>(usage.iterations);
    usage.live = kLive;
    usage.need = kPeak;
    usage.resident = state.resident;
    usage.spilled = state.spilled;
    usage.is_parked = true;
    return usage;
  }

  double tell(JobId from, const wire::JobMessage& message) {
    const auto begin = std::chrono::steady_clock::now();
    const Ready ready = coordinator_->on_message(from, message, now_);
    const auto end = std::chrono::steady_clock::now();
    for (const PageAction& action : ready.page_actions) {
      if (action.kind != PageAction::Kind::kGrant) continue;
      holder_ = action.job;
      jobs_[action.job.value].term = action.term;
    }
    for (const Outbound& out : ready.messages)
      if (const auto* const grant = std::get_if<wire::Grant>(&out.message)) {
        jobs_[out.to.value].room = grant->room;
      }
    for (const Outbound& out : ready.messages)
      if (const auto* const revoke = std::get_if<wire::Revoke>(&out.message)) {
        give(out.to, *revoke);
      }
    return std::chrono::duration<double, std::micro>(end - begin).count();
  }

  std::unique_ptr<Coordinator> coordinator_;
  Nanos now_ = seconds(1);
  JobId holder_;
  std::vector<State> jobs_;
  Samples samples_;
};

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / 1e6;
}

double quantile(std::vector<double> samples, double of) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(of * static_cast<double>(samples.size() - 1))];
}

int run(std::uint64_t num_jobs, const std::string& policy, double part) {
  const double before_mb = resident_mb();
  Turns turns(num_jobs, policy, part);
  for (int turn = 0; turn < kNumWarmUp; ++turn)
    turns.turn();
  turns.forget_samples();
  for (int turn = 0; turn < kNumTurns; ++turn)
    turns.turn();
  const Samples& us = turns.samples();
  fmt::print(
      "{{\"jobs\":{},\"policy\":\"{}\",\"close_us\":{:.3f},\"close_p99_us\":{:.3f},"
      "\"want_us\":{:.3f},\"want_p99_us\":{:.3f},\"released_us\":{:.3f},"
      "\"released_p99_us\":{:.3f},\"num_released\":{},\"memory_mb\":{:.2f}}}\n",
      num_jobs, policy, quantile(us.closes, 0.5), quantile(us.closes, 0.99),
      quantile(us.wants, 0.5), quantile(us.wants, 0.99), quantile(us.released, 0.5),
      quantile(us.released, 0.99), us.released.size(), resident_mb() - before_mb);
  return 0;
}

}  // namespace
}  // namespace gpushare::sched

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: decision_bench NUM_JOBS [POLICY [PART]]\n");
    return 2;
  }
  return gpushare::sched::run(std::strtoull(argv[1], nullptr, 10), argc > 2 ? argv[2] : "fair",
                              argc > 3 ? std::strtod(argv[3], nullptr) : 1);
}
