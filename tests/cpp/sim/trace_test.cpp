#include "csrc/sim/scenario/trace.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

using ::testing::HasSubstr;

std::vector<JobSpec> parse(const std::string& text) {
  auto jobs = parse_trace(text);
  EXPECT_TRUE(jobs.has_value()) << jobs.error().to_string();
  return jobs.value_or(std::vector<JobSpec>{});
}

TEST(Trace, ReadsEveryColumn) {
  const auto jobs = parse(
      "# made by hand\n"
      "utilisation,priority,name,user,submit,iterations,iteration,gap,persistent,peak,weight,limit,"
      "deadline,"
      "due,share_limit,elastic,model,says_length,gpus\n"
      "\n"
      "0.75,guaranteed, vgg.1 "
      ",ann,1.5s,300,20ms,1ms,500MiB,2GiB,2.5,3GiB,50ms,10min,0.5,1,vgg,0,8\r\n");
  ASSERT_EQ(jobs.size(), 1U);
  const JobSpec& job = jobs.front();
  EXPECT_EQ(job.name, "vgg.1");
  EXPECT_EQ(job.user, "ann");
  EXPECT_EQ(job.arrival, millis(1500));
  EXPECT_EQ(job.iterations, 300U);
  EXPECT_EQ(job.iteration, millis(20));
  EXPECT_EQ(job.gap, millis(1));
  EXPECT_EQ(job.live, mib(500));
  EXPECT_EQ(job.peak, gib(2));
  EXPECT_EQ(job.priority, wire::Priority::kGuaranteed);
  EXPECT_EQ(job.utilisation, 0.75);
  EXPECT_EQ(job.weight, 2.5);
  EXPECT_EQ(job.limit, gib(3));
  EXPECT_EQ(job.deadline, millis(50));
  EXPECT_EQ(job.due, seconds(600));
  EXPECT_EQ(job.share_limit, 0.5);
  EXPECT_TRUE(job.is_elastic);
  EXPECT_EQ(job.model, "vgg");
  EXPECT_FALSE(job.says_length);
  EXPECT_EQ(job.gpus, 8U);
}

TEST(Trace, RefusesAJobOfNoDevice) {
  const auto jobs = parse_trace("submit_s,iterations,iteration_ms,gpus\n0,1,1,0\n");
  ASSERT_FALSE(jobs.has_value());
  EXPECT_THAT(jobs.error().message(), HasSubstr("line 2: gpus must be 1 to"));
}

TEST(Trace, TakesUnitsFromTheColumnsName) {
  const auto jobs = parse(
      "submit_min,iterations,iteration_ms,persistent_gib,peak_mb\n"
      "2,10,12.5,1,2000\n"
      "3,10,12.5,,\n");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].arrival, seconds(120));
  EXPECT_EQ(jobs[0].iteration, micros(12'500));
  EXPECT_EQ(jobs[0].live, gib(1));
  EXPECT_EQ(jobs[0].peak, Bytes{2'000'000'000});
  EXPECT_EQ(jobs[0].name, "job1");
  EXPECT_EQ(jobs[1].peak, Bytes{0}) << "nothing is the default";
  EXPECT_EQ(jobs[1].name, "job2");
}

TEST(Trace, MakesIterationsOfADuration) {
  const auto only = parse("submit_s,duration_s\n0,60\n");
  EXPECT_EQ(only[0].iterations, 600U);
  EXPECT_EQ(only[0].iteration, millis(100));
  const auto with_time = parse("submit_s,duration_s,iteration_s,gap_s\n0,60,0.2,0.1\n0,0.01,1,0\n");
  EXPECT_EQ(with_time[0].iterations, 200U);
  EXPECT_EQ(with_time[1].iterations, 1U);
  const auto with_count = parse("submit_s,duration_s,iterations,gap_s\n0,60,100,0.1\n");
  EXPECT_EQ(with_count[0].iteration, millis(500));
}

TEST(Trace, SaysWhatIsWrongAndWhere) {
  const struct {
    const char* text;
    const char* said;
  } kBad[] = {
      {"", "a trace without jobs"},
      {"submit_s,iterations,iteration_s\n", "a trace without jobs"},
      {"submit_s,iterations,iteration_s,colour\n", "line 1: no column is called 'colour'"},
      {"submit_mib,iterations\n", "line 1: no column is called 'submit_mib'"},
      {"submit_s,submit,iterations\n", "line 1: the column 'submit' is there twice"},
      {"iterations,iteration_s\n1,1\n", "line 1: no column 'submit'"},
      {"submit_s,iteration_s\n0,1\n", "line 1: neither a column 'iterations' nor 'duration'"},
      {"submit_s,iterations,iteration_s\n0,1\n", "line 2: 2 values for 3 columns"},
      {"submit_s,iterations,iteration_s\n0,1,1\n\nx,1,1\n",
       "line 4: column 'submit_s': 'x' is not a number of s"},
      {"submit,iterations,iteration_s\n5,1,1\n", "column 'submit': '5' is not a time such as"},
      {"submit_s,iterations,iteration_s\n0,1.5,1\n", "column 'iterations': '1.5' is not a count"},
      {"submit_s,duration_s,speeds\n0,1,0.5\n", "'0.5' is not kinds of devices with speeds"},
      {"submit_s,duration_s,speeds\n0,1,a:1/a:2\n", "'a:1/a:2' is not kinds of devices"},
      {"submit_s,iterations,iteration_s\n0,1,0\n", "line 2: iteration must be more than 0s"},
      {"submit_s,iterations,iteration_s\n0,,1\n", "line 2: neither iterations nor a duration"},
      {"submit_s,iterations,iteration_s\n0,0,1\n", "line 2: iterations must be 1 or more"},
      {"submit_s,iterations,iteration\n0,1e15,1h\n", "line 2: it takes 3.6e+18 s"},
      {"submit_s,iterations,duration_s,iteration_s\n0,1,1,1\n", "two of them are enough"},
      {"submit_s,iterations,iteration_s,weight\n0,1,1,-1\n", "line 2: weight -1; allowed"},
      {"submit_s,iterations,iteration_s,priority\n0,1,1,high\n", "column 'priority': 'high' is"},
      {"submit_s,iterations,iteration_s,persistent,peak\n0,1,1,2MiB,1MiB\n", "peak must be"},
      {"submit_s,iterations,iteration_s,peak\n0,1,1,9000000GiB\n", "more than any device has"},
      {"submit_s,iterations,iteration_s,name\n0,1,1,\"a\"\n", "name must be letters"},
      {"submit_s,iterations,iteration_s,user\n0,1,1,a b\n", "user must be letters"},
  };
  for (const auto& [text, said] : kBad) {
    const auto jobs = parse_trace(text);
    ASSERT_FALSE(jobs.has_value()) << text;
    EXPECT_EQ(jobs.error().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(jobs.error().message(), HasSubstr(said)) << text;
  }
}

}  // namespace
}  // namespace gpushare::sim
