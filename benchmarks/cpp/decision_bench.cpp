// What a decision of the coordinator costs, by the number of jobs that wait.
//
//   decision_bench NUM_JOBS [POLICY]
//
// All jobs fit on the device and want a lease. A turn is: the holder closes its lease (upon which
// the next job is granted one), and wants another. Prints one line of JSON: the median and the 99th
// percentile of the microseconds of a close with its grant and of a want, and the process's
// resident memory.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/coordinator.h"

namespace gpushare::sched {
namespace {

constexpr int kNumTurns = 2000;
constexpr int kNumWarmUp = 200;

class Turns {
 public:
  Turns(std::uint64_t num_jobs, const std::string& policy) {
    CoordinatorOptions options;
    options.capacity = gib(1 << 20);
    options.policy = policy;
    auto made = Coordinator::create(options, now_);
    if (!made) {
      fmt::print(stderr, "{}\n", made.error().to_string());
      std::exit(1);
    }
    coordinator_ = std::move(*made);
    terms_.resize(num_jobs + 1);
    iterations_.resize(num_jobs + 1);
    for (std::uint64_t id = 1; id <= num_jobs; ++id)
      join(JobId{id});
    for (std::uint64_t id = 1; id <= num_jobs; ++id)
      want(JobId{id});
  }

  // Microseconds.
  double close() {
    const JobId job = holder_;
    now_ += millis(300);
    iterations_[job.value] += 3;
    return tell(job,
                wire::Closed{.of = address(job), .term = terms_[job.value], .usage = usage(job)});
  }
  double want(JobId job) {
    now_ += micros(10);
    return tell(job, wire::Wanted{.of = address(job), .usage = usage(job)});
  }
  [[nodiscard]] JobId holder() const { return holder_; }

 private:
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
    wish.weight = 1.0 + static_cast<double>(job.value % 4);
    wish.iterations_total = 1'000'000 + job.value;
    tell(job, wish);
  }

  [[nodiscard]] wire::Usage usage(JobId job) const {
    wire::Usage usage;
    usage.iterations = 10 + iterations_[job.value];
    usage.busy = millis(100) * static_cast<std::int64_t>(usage.iterations);
    usage.live = mib(100);
    usage.need = mib(300);
    usage.resident = mib(100);
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
      terms_[action.job.value] = action.term;
    }
    return std::chrono::duration<double, std::micro>(end - begin).count();
  }

  std::unique_ptr<Coordinator> coordinator_;
  Nanos now_ = seconds(1);
  JobId holder_;
  std::vector<Term> terms_;
  std::vector<std::uint64_t> iterations_;
};

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / 1e6;
}

double part(std::vector<double>& samples, double quantile) {
  std::sort(samples.begin(), samples.end());
  const auto at = static_cast<std::size_t>(quantile * static_cast<double>(samples.size() - 1));
  return samples[at];
}

int run(std::uint64_t num_jobs, const std::string& policy) {
  const double before_mb = resident_mb();
  Turns turns(num_jobs, policy);
  std::vector<double> closes;
  std::vector<double> wants;
  for (int turn = 0; turn < kNumWarmUp + kNumTurns; ++turn) {
    const JobId job = turns.holder();
    const double close = turns.close();
    const double want = turns.want(job);
    if (turn < kNumWarmUp) continue;
    closes.push_back(close);
    wants.push_back(want);
  }
  fmt::print(
      "{{\"jobs\":{},\"policy\":\"{}\",\"close_us\":{:.3f},\"close_p99_us\":{:.3f},"
      "\"want_us\":{:.3f},\"want_p99_us\":{:.3f},\"memory_mb\":{:.2f}}}\n",
      num_jobs, policy, part(closes, 0.5), part(closes, 0.99), part(wants, 0.5), part(wants, 0.99),
      resident_mb() - before_mb);
  return 0;
}

}  // namespace
}  // namespace gpushare::sched

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: decision_bench NUM_JOBS [POLICY]\n");
    return 2;
  }
  return gpushare::sched::run(std::strtoull(argv[1], nullptr, 10), argc > 2 ? argv[2] : "fair");
}
