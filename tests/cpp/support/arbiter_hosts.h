// Hosts of an arbiter, and what their ranks say and are told. Each host that is here answers at
// once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/arbiter/arbiter.h"
#include "csrc/arbiter/host_side.h"

namespace gpushare::arbiter {

inline const host::GangName kRed{1000, "red"};
inline const host::GangName kBlue{1000, "blue"};

// A host and its coordinator: what it has said, and what it was told.
struct Coordinator {
  PeerId peer;
  std::string name;
  std::uint64_t instance = 1;
  std::string devices = "cpu";
  HostSide side = {};
  std::map<JobId, host::RankReport> ranks = {};
  std::map<JobId, host::RankOrder> orders = {};
  bool is_here = true;
};

class ArbiterTest : public ::testing::Test {
 protected:
  Coordinator& add_host(const std::string& name) {
    Coordinator& host = hosts_[name];
    host.name = name;
    connect(host);
    return host;
  }
  void connect(Coordinator& host) {
    host.peer = PeerId{++last_peer_};
    host.is_here = true;
    host.side.begin();
    const auto joined = arbiter_.join(host.peer,
                                      {.host = host.name,
                                       .place = "/sock",
                                       .instance = host.instance,
                                       .devices = host.devices,
                                       .seen_epoch = host.side.seen_epoch()},
                                      now_);
    ASSERT_TRUE(joined.has_value()) << joined.error().message();
    tell(host);
  }
  void cut(Coordinator& host) {
    host.is_here = false;
    arbiter_.leave(host.peer, now_);
  }
  // A rank that wants a lease.
  void add_rank(Coordinator& host,
                const host::GangName& gang,
                std::uint64_t job,
                std::uint32_t number) {
    host::RankReport report{
        .gang = gang, .job = JobId{job}, .ranks = 2, .wants = true, .iteration = millis(10)};
    numbers_[{host.name, JobId{job}}] = number;
    see(host, report);
  }
  void see(Coordinator& host, const host::RankReport& report) {
    host.ranks[report.job] = report;
    host.side.report(report, numbers_.at({host.name, report.job}));
    if (host.is_here) tell(host);
  }
  template <typename Change>
  void change(Coordinator& host, std::uint64_t job, const Change& with) {
    host::RankReport report = host.ranks.at(JobId{job});
    with(report);
    see(host, report);
  }
  void run(Coordinator& host, std::uint64_t job) {
    change(host, job, [](host::RankReport& r) { r.has_lease = !(r.wants = false); });
  }
  void stop(Coordinator& host, std::uint64_t job, std::uint64_t steps) {
    change(host, job, [steps](host::RankReport& r) {
      r.has_lease = false;
      r.wants = true;
      r.steps = steps;
    });
  }
  void tell(Coordinator& host) {
    for (const HostMessage& message : host.side.take_changes()) {
      const Status status = arbiter_.hear(host.peer, message, now_);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  // Steps until nothing is to be done at this time. Each host that is here answers at once.
  void settle() {
    for (bool is_busy = true; is_busy; now_ += millis(2)) {
      Ready ready = arbiter_.step(now_);
      is_busy = !ready.messages.empty() || (ready.look_at && *ready.look_at <= now_ + millis(2));
      for (auto& [peer, message] : ready.messages)
        deliver(peer, message);
      for (auto& [peer, why] : ready.close)
        closed_.push_back(why);
      arbiter_.check_invariants();
    }
  }
  void deliver(PeerId peer, const ArbiterMessage& message) {
    for (auto& [name, host] : hosts_) {
      if (host.peer != peer || !host.is_here || !answers_) continue;
      if (const auto* look = std::get_if<Look>(&message)) {
        tell(host);
        ASSERT_TRUE(arbiter_.hear(peer, Looked{look->round}, now_).ok());
      } else if (const auto* order = std::get_if<Order>(&message)) {
        if (auto taken = host.side.take(*order)) host.orders[taken->job] = *taken;
      }
    }
  }
  // Answers to all questions that it may have been asked.
  void answer_all(Coordinator& host) {
    for (std::uint64_t round = 1; round < 100; ++round)
      ASSERT_TRUE(arbiter_.hear(host.peer, Looked{round}, now_).ok());
  }
  struct TwoHosts {
    Coordinator& a;
    Coordinator& b;
  };
  // Each host has a rank of red, job 1, and red's row is open.
  TwoHosts open_red() {
    const TwoHosts hosts{add_host("a"), add_host("b")};
    add_rank(hosts.a, kRed, 1, 0);
    add_rank(hosts.b, kRed, 1, 1);
    settle();
    return hosts;
  }
  // Both ranks have leases besides.
  TwoHosts run_red() {
    const TwoHosts hosts = open_red();
    run(hosts.a, 1);
    run(hosts.b, 1);
    settle();
    return hosts;
  }
  static const host::RankOrder& order(Coordinator& host, std::uint64_t job) {
    return host.orders.at(JobId{job});
  }
  void start_arbiter(std::uint64_t epoch) {
    arbiter_ = Arbiter({.least_slice = millis(100)}, epoch);
    for (auto& [name, host] : hosts_)
      host.is_here = false;
  }

  Nanos now_ = seconds(1);
  Arbiter arbiter_{{.least_slice = millis(100)}, 100};
  std::map<std::string, Coordinator> hosts_;
  std::map<std::pair<std::string, JobId>, std::uint32_t> numbers_;
  std::uint64_t last_peer_ = 0;
  bool answers_ = true;
  std::vector<std::string> closed_;
};

// Both hosts number their jobs from 1.

}  // namespace gpushare::arbiter
