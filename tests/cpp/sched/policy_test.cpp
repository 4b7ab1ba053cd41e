#include "csrc/sched/policies/policy.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/contract/policy_contract.h"

namespace gpushare::sched::testing {

INSTANTIATE_TEST_SUITE_P(AllPolicies,
                         PolicyContract,
                         ::testing::ValuesIn(policy_names()),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::ranges::replace(name, '+', '_');
                           return name;
                         });

namespace {

Job job_of(std::uint64_t id, std::uint64_t arrival, std::uint64_t queued, double virtual_time) {
  Job job;
  job.id = JobId{id};
  job.who.arrival = arrival;
  job.place.queued = queued;
  job.served.virtual_time = virtual_time;
  return job;
}

bool is_first(const char* policy, const Job& a, const Job& b) {
  const auto made = make_policy(policy);
  return (*made)->key(a.standing()) < (*made)->key(b.standing());
}

TEST(Policy, EachOrdersByItsOwnNumber) {
  const Job a = job_of(1, 1, 9, 5.0);
  const Job b = job_of(2, 2, 8, 4.0);
  EXPECT_TRUE(is_first("fifo", a, b));
  EXPECT_TRUE(is_first("rr", b, a));
  EXPECT_TRUE(is_first("fair", b, a));
  const Job c = job_of(3, 3, 7, 5.0);
  EXPECT_TRUE(is_first("fair", a, c)) << "even: the earlier arrival";
}

TEST(Policy, ARoundRobinHolderIsAfterEveryWaiter) {
  const Job holder = job_of(1, 1, 1, 0);
  const Job waiter = job_of(2, 2, 1000000, 0);
  EXPECT_TRUE(is_first("rr", waiter, holder.copy_requeued(Nanos{0}, Nanos{0})));
}

// Of those that share time. (By srtf, what has been served has less to go.)
TEST(Policy, ServiceMovesNobodyForward) {
  for (const char* name : {"fifo", "rr", "fair", "priority"}) {
    const auto policy = make_policy(name);
    EXPECT_TRUE(rc::check("service moves nobody forward", [&] {
      const Job a = any_job(1);
      const Nanos time = millis(*rc::gen::inRange(0, 100000));
      RC_ASSERT(!((*policy)->key(a.requeued(time, Nanos{0})) < (*policy)->key(a.standing())));
    })) << name;
  }
}

TEST(Policy, AFairHolderIsChargedByItsWeight) {
  Job holder = job_of(1, 1, 1, 0);
  holder.settings.weight = 2;
  const Job waiter = job_of(2, 2, 2, 1.0);
  EXPECT_TRUE(is_first("fair", holder.copy_requeued(millis(1999), Nanos{0}), waiter));
  EXPECT_TRUE(is_first("fair", waiter, holder.copy_requeued(millis(2001), Nanos{0})));
}

// 100 iterations to go of 1 s, registered at 0.
Job job_of_length(std::uint64_t id, std::uint64_t iterations_total) {
  Job job = job_of(id, id, id, 0);
  job.settings.iterations_total = iterations_total;
  job.measured.iteration = seconds(1);
  return job;
}

TEST(Srtf, TheShortestRemainingTimeIsFirst) {
  const Job shorter = job_of_length(2, 90);
  Job longer = job_of_length(1, 100);
  EXPECT_TRUE(is_first("srtf", shorter, longer));
  longer.usage.iterations = 20;
  EXPECT_TRUE(is_first("srtf", longer, shorter)) << "what is done does not count";
  longer.measured.iteration = seconds(2);
  EXPECT_TRUE(is_first("srtf", shorter, longer)) << "iterations count by their length";
}

TEST(Srtf, OfAnUnknownLengthWhatItHadCounts) {
  Job had_little = job_of(1, 2, 1, 0);
  Job had_much = job_of(2, 1, 1, 0);
  had_little.served.time = seconds(10);
  had_much.served.time = seconds(20);
  EXPECT_TRUE(is_first("srtf", had_little, had_much));
  EXPECT_TRUE(is_first("srtf", job_of_length(3, 15), had_much)) << "the same seconds";
  EXPECT_TRUE(is_first("srtf", had_little, job_of_length(3, 15)));
}

TEST(Srtf, OfAnUnknownLengthThoseOfEarlierJobsCount) {
  Job learned = job_of_length(1, 0);
  learned.served.time = seconds(1);
  learned.measured.remembered = Profile{};
  learned.measured.remembered->lengths.note({.name = 0, .iterations = 30});
  learned.measured.length = 10;
  EXPECT_TRUE(is_first("srtf", job_of_length(2, 19), learned));
  EXPECT_TRUE(is_first("srtf", learned, job_of_length(2, 21)));
  learned.measured.length = 32;
  EXPECT_TRUE(is_first("srtf", job_of_length(2, 7), learned)) << "a quarter of what it ran";
  EXPECT_TRUE(is_first("srtf", learned, job_of_length(2, 9)));
  learned.measured.length = 60;
  EXPECT_TRUE(is_first("srtf", learned, job_of_length(2, 2))) << "it had 1 s";
}

TEST(Srtf, ANewJobIsFirstUntilItsIterationsWereSeen) {
  Job unseen = job_of_length(2, 1000000);
  unseen.measured.iteration = Nanos{};
  EXPECT_TRUE(is_first("srtf", unseen, job_of_length(1, 1)));
}

TEST(Srtf, OfAJobThatDoesMoreThanItSaidOrShowsNothingWhatItHadCounts) {
  Job over = job_of_length(1, 10);
  over.usage.iterations = 11;
  over.served.time = seconds(20);
  Job silent = job_of_length(3, 10);
  silent.measured.iteration = Nanos{};
  silent.served.time = seconds(20);
  for (const Job& job : {over, silent}) {
    EXPECT_TRUE(is_first("srtf", job_of_length(2, 15), job));
    EXPECT_TRUE(is_first("srtf", job, job_of_length(2, 25)));
  }
}

double overdue_at(const Job& job) { return (*make_policy("srtf"))->key(job.standing()).overdue_at; }

TEST(Srtf, AJobIsOverdueOnceItHasWaitedThirtyTimesItsLength) {
  Job job = job_of_length(1, 100);
  job.place.waiting_since = seconds(50);
  EXPECT_EQ(overdue_at(job), 50 + 30 * 100);
  job.served.waited = seconds(30);
  EXPECT_EQ(overdue_at(job), 20 + 30 * 100) << "it waited before";
  job.usage.iterations = 40;
  job.served.time = seconds(40);
  EXPECT_EQ(overdue_at(job), 20 + 30 * 100) << "it is as long as it was";
}

TEST(Srtf, OfAnUnknownLengthAJobIsTakenToRunAsLongAgain) {
  Job job = job_of(1, 1, 1, 0);
  EXPECT_EQ(overdue_at(job), 30) << "no job counts as shorter than a second";
  job.served.time = seconds(20);
  EXPECT_EQ(overdue_at(job), 30 * 2 * 20);
}

TEST(Srtf, OtherPoliciesKnowNoOverdueJob) {
  for (const std::string& name : policy_names()) {
    const double at = (*make_policy(name))->key(job_of_length(1, 1).standing()).overdue_at;
    EXPECT_EQ(std::isfinite(at), name.starts_with("srtf")) << name;
  }
}

TEST(Deadline, TheEarliestIsFirst) {
  Job urgent = job_of(2, 2, 2, 0);
  urgent.place.waiting_since = seconds(5);
  urgent.settings.deadline = millis(50);
  Job patient = job_of(1, 1, 1, 0);
  patient.place.waiting_since = seconds(1);
  EXPECT_TRUE(is_first("deadline", urgent, patient));
  patient.settings.deadline = seconds(4);
  EXPECT_TRUE(is_first("deadline", patient, urgent)) << "at 5 s, not at 5.05 s";
}

TEST(Deadline, WhoHasNoneDoesNotWaitForEver) {
  Job urgent = job_of(2, 2, 2, 0);
  urgent.settings.deadline = millis(50);
  const Job without = job_of(1, 1, 1, 0);
  EXPECT_TRUE(is_first("deadline", urgent.copy_requeued(Nanos{0}, seconds(9)), without));
  EXPECT_TRUE(is_first("deadline", without, urgent.copy_requeued(Nanos{0}, seconds(11))));
}

std::string why(const char* policy, const Job& first, const Job& second) {
  const auto made = make_policy(policy);
  EXPECT_LT((*made)->key(first.standing()), (*made)->key(second.standing()));
  return (*made)->why(first, second);
}

TEST(PolicyWhy, AClassIsBeforeAllElse) {
  Job first = job_of(3, 2, 9, 9.0);
  first.who.name = "gpt";
  first.settings.priority = wire::Priority::kGuaranteed;
  for (const std::string& policy : policy_names()) {
    EXPECT_EQ(why(policy.c_str(), first, job_of(5, 1, 1, 0)), "3 (gpt) is guaranteed, 5 is normal");
  }
}

TEST(PolicyWhy, EvenJobsAreInTheOrderOfTheirRegistration) {
  EXPECT_EQ(why("fair", job_of(3, 1, 2, 4.0), job_of(5, 2, 1, 4.0)),
            "fair: even, and 3 registered before 5");
}

TEST(PolicyWhy, FifoSaysHowMuchEarlierOneRegistered) {
  Job second = job_of(5, 2, 1, 0);
  second.who.registered_at = seconds(12);
  EXPECT_EQ(why("fifo", job_of(3, 1, 2, 0), second), "fifo: 3 registered 12.0 s before 5");
}

TEST(PolicyWhy, RrSaysHowMuchLongerOneWaits) {
  Job first = job_of(3, 2, 1, 0);
  first.place.waiting_since = seconds(4);
  Job second = job_of(5, 1, 2, 0);
  second.place.waiting_since = millis(5500);
  EXPECT_EQ(why("rr", first, second), "rr: 3 waits 1.5 s longer than 5");
}

TEST(PolicyWhy, FairAndPrioritySayWhatWasServedOverWeight) {
  Job first = job_of(3, 2, 1, 9.5);
  first.settings.weight = 2;
  const Job second = job_of(5, 1, 2, 12.0);
  const std::string said = "served over weight, 3 counts 9.500 s (weight 2), 5 12.000 s (weight 1)";
  EXPECT_EQ(why("fair", first, second), "fair: " + said);
  EXPECT_EQ(why("priority", first, second), "priority: " + said);
}

TEST(PolicyWhy, SrtfSaysWhatEachHasToGo) {
  EXPECT_EQ(why("srtf", job_of_length(3, 12), job_of_length(5, 40)),
            "srtf: 3 has 12.000 s to go; 5 has 40.000 s to go");
  Job unseen = job_of_length(5, 40);
  unseen.measured.iteration = Nanos{};
  Job unknown = job_of(7, 1, 1, 0);
  unknown.served.time = seconds(3);
  EXPECT_EQ(
      why("srtf", unseen, unknown),
      "srtf: 5 has had 0.000 s, and no iteration of it was seen; 7 has had 3.000 s, and it does "
      "not say how long it is");
  Job over = job_of_length(9, 5);
  over.usage.iterations = 5;
  over.served.time = seconds(4);
  EXPECT_EQ(
      why("srtf", unknown, over),
      "srtf: 7 has had 3.000 s, and it does not say how long it is; 9 has had 4.000 s, and it "
      "has run all iterations that it said");
}

TEST(PolicyWhy, SrtfSaysHowSureALearnedLengthIs) {
  Job learned = job_of_length(3, 0);
  learned.measured.iterations = kIterationsToLearn;
  learned.measured.remembered = Profile{};
  learned.measured.remembered->lengths.note({.name = 0, .iterations = 30});
  EXPECT_EQ(
      why("srtf", learned, job_of_length(5, 40)),
      "srtf: 3 has 30.000 s to go, as 1 earlier job with its model had 30 iterations to go at "
      "this point; 5 has 40.000 s to go");
  learned.measured.remembered->lengths.note({.name = 0, .iterations = 40});
  EXPECT_EQ(why("srtf", learned, job_of_length(5, 40)),
            "srtf: 3 has 35.000 s to go, as 2 earlier jobs with its model had 30 to 40 iterations "
            "to go at this point; 5 has 40.000 s to go");
}

TEST(PolicyWhy, SrtfSaysThatAJobHasRunLongerThanThoseBefore) {
  Job learned = job_of_length(3, 0);
  learned.measured.remembered = Profile{};
  learned.measured.remembered->lengths.note({.name = 0, .iterations = 30});
  learned.measured.length = 32;
  EXPECT_EQ(why("srtf", learned, job_of_length(5, 40)),
            "srtf: 3 has 8.000 s to go, as remembered of its model, a quarter of what it ran, as 1 "
            "earlier job with its model ran for less; 5 has 40.000 s to go");
}

TEST(PolicyWhy, SideBySideTheOrderIsThatOfTheOtherPolicy) {
  EXPECT_EQ(why("srtf+pack", job_of_length(3, 30), job_of_length(5, 40)),
            "srtf+pack: 3 has 30.000 s to go; 5 has 40.000 s to go");
  EXPECT_TRUE(is_first("deadline+pack", job_of(3, 1, 1, 9), job_of(5, 2, 2, 1)));
}

TEST(PolicyWhy, DeadlineSaysWhoIsDueFirst) {
  Job first = job_of(3, 2, 1, 0);
  first.place.waiting_since = seconds(2);
  first.settings.deadline = millis(50);
  Job second = job_of(5, 1, 2, 0);
  second.place.waiting_since = seconds(1);
  second.settings.weight = 2;
  EXPECT_EQ(why("deadline", first, second),
            "deadline: 3 is due 3.950 s before 5: a deadline of 50 ms, against none, which counts "
            "as 5 s");
}

TEST(Policy, NamesThePoliciesThereAre) {
  const auto made = make_policy("lottery");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(
      made.error().message(),
      ::testing::HasSubstr("fifo rr fair srtf priority deadline pack srtf+pack deadline+pack"));
}

}  // namespace
}  // namespace gpushare::sched::testing
