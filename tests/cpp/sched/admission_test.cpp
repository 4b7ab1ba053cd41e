#include "csrc/sched/job/admission.h"

#include <optional>

#include <gtest/gtest.h>

#include "csrc/sched/job/job.h"

namespace gpushare::sched {
namespace {

wire::Usage usage(Bytes live, Bytes need) {
  wire::Usage usage;
  usage.iterations = kIterationsToLearn;
  usage.live = live;
  usage.need = need;
  return usage;
}

TEST(Admission, SizesAreUnknownForThreeIterations) {
  wire::Usage few = usage(mib(10), mib(30));
  EXPECT_TRUE(sizes_of(few, Bytes{}).has_value());
  few.iterations = 2;
  EXPECT_FALSE(sizes_of(few, Bytes{}).has_value());
  Job job;
  EXPECT_FALSE(is_learning(job)) << "it was not seen yet";
  job.observe(few, seconds(1));
  EXPECT_TRUE(is_learning(job));
  few.iterations = 3;
  job.observe(few, seconds(2));
  EXPECT_FALSE(is_learning(job));
}

TEST(Admission, EphemeralIsWhatIsNotLiveAtABoundary) {
  const Sizes sizes = *sizes_of(usage(mib(10), mib(30)), mib(100));
  EXPECT_EQ(sizes.persistent, mib(10));
  EXPECT_EQ(sizes.ephemeral, mib(120)) << "of the lane's memory, too";
  wire::Usage beside = usage(mib(10), mib(30));
  beside.outside = mib(6);
  EXPECT_EQ(sizes_of(beside, Bytes{})->persistent, mib(16));
  EXPECT_EQ(sizes_of(beside, Bytes{})->ephemeral, mib(14));
  EXPECT_EQ(sizes_of(usage(mib(50), mib(30)), Bytes{})->ephemeral, Bytes{}) << "an old figure";
}

TEST(Admission, PlansWithRememberedSizesUntilThoseOfTheJobAreKnown) {
  Job job;
  EXPECT_FALSE(planned_sizes(job).has_value());
  Profile known;
  job.measured.begin_model(4, &known);
  EXPECT_FALSE(planned_sizes(job).has_value()) << "they were unknown then too";
  known.sizes = {mib(30), mib(10)};
  job.measured.begin_model(5, &known);
  EXPECT_EQ(*planned_sizes(job), known.sizes);
  job.usage.live = mib(100);
  job.usage.outside = mib(1);
  EXPECT_EQ(planned_sizes(job)->persistent, mib(101)) << "what it has already it keeps";
  job.usage = usage(mib(5), mib(7));
  EXPECT_EQ(*planned_sizes(job), (Sizes{mib(5), mib(2)}));
}

TEST(Admission, FitsByTheSumOfPersistentAndTheLargestEphemeral) {
  const auto fit_in = [](Bytes capacity) {
    Admission sums(capacity);
    sums.add(Sizes{mib(10), mib(100)});
    sums.add(std::nullopt);
    sums.add(Sizes{mib(20), mib(60)});
    EXPECT_EQ(sums.persistent(), mib(30));
    EXPECT_EQ(sums.ephemeral(), mib(160));
    EXPECT_EQ(sums.largest_ephemeral(), mib(100));
    EXPECT_EQ(sums.num_unknown(), 1U);
    return sums.fit();
  };
  EXPECT_EQ(fit_in(mib(190)), Fit::kAll);
  EXPECT_EQ(fit_in(mib(190) - Bytes{1}), Fit::kOneEphemeral);
  EXPECT_EQ(fit_in(mib(130)), Fit::kOneEphemeral);
  EXPECT_EQ(fit_in(mib(130) - Bytes{1}), Fit::kPersistentInTurns);
  EXPECT_EQ(Admission(mib(2)).fit(), Fit::kAll) << "nobody is there";
}

}  // namespace
}  // namespace gpushare::sched
