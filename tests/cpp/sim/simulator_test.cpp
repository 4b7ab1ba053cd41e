#include "csrc/sim/simulator.h"

#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

using ::testing::HasSubstr;

// The number after `"name":`, in the part of the report that is about `job` (empty: the head).
double figure(const std::string& report, const std::string& job, const std::string& name) {
  const std::size_t part = job.empty() ? 0 : report.find("\"name\":\"" + job + "\"");
  const std::string key = "\"" + name + "\":";
  const std::size_t at = part == std::string::npos ? part : report.find(key, part);
  if (at == std::string::npos) {
    ADD_FAILURE() << name << " of '" << job << "' is not in " << report;
    return 0;
  }
  return std::strtod(report.c_str() + at + key.size(), nullptr);
}

std::string run(const std::string& text) {
  auto report = run_scenario(text);
  EXPECT_TRUE(report.has_value()) << report.error().to_string();
  return report.value_or("");
}

TEST(Simulator, GivesTwoEqualJobsEqualShares) {
  for (const std::string policy : {"rr", "fair"}) {
    const std::string report =
        run("device capacity=2GiB until=60s policy=" + policy +
            "\n"
            "job name=a iteration=50ms gap=1ms iterations=100000 live=200MiB peak=600MiB\n"
            "job name=b iteration=50ms gap=1ms iterations=100000 live=200MiB peak=600MiB\n");
    EXPECT_NEAR(figure(report, "a", "iterations"), figure(report, "b", "iterations"), 12) << report;
    EXPECT_GT(figure(report, "a", "leases"), 10) << report;
  }
}

// Ten iterations of the short job, which comes 5 s before the long one. Nobody says how many it
// has.
double finish_of_short(const std::string& of_short, const std::string& of_long, int devices) {
  std::string trace =
      "name,submit_s,iterations,iteration_s,persistent_mib,model,says_length\n"
      "past_short,0,10,1,600,s,0\n"
      "past_long,0,100,1,600,l,0\n"
      "short,200,10,1,600," +
      of_short + ",0\nlong,205,100,1,600," + of_long + ",0\n";
  if (devices > 1) trace += "beside,201,1000,1,600,,1\n";
  auto report = run_trace(fmt::format("capacity=1GiB policy=srtf switch=0s devices={}", devices),
                          trace, {.jobs = true});
  EXPECT_TRUE(report.has_value()) << report.error().to_string();
  return figure(report.value_or(""), "short", "finish_seconds");
}

// With two devices the jobs of before ran on one each, and both new ones are on the first.
TEST(Simulator, LengthsAreLearnedFromEarlierJobs) {
  for (const int devices : {1, 2}) {
    EXPECT_NEAR(finish_of_short("s", "l", devices), 210, 0.5) << devices;
    EXPECT_GT(finish_of_short("", "", devices), 212) << "the new one has had less: " << devices;
    EXPECT_GT(finish_of_short("l", "s", devices), 215) << "the other is the short one: " << devices;
  }
}

TEST(Simulator, CountsWhatIsUnderWayAtTheEnd) {
  const std::string report =
      run("device capacity=2GiB policy=fifo until=10s\n"
          "job name=a iteration=50ms iterations=100000 live=200MiB peak=600MiB\n"
          "job name=b iteration=50ms iterations=100000 live=200MiB peak=600MiB\n");
  EXPECT_NEAR(figure(report, "", "utilisation"), 1, 0.01) << report;
  EXPECT_NEAR(figure(report, "a", "served_seconds"), 10, 0.1) << report;
  EXPECT_NEAR(figure(report, "b", "waited_seconds"), 10, 0.1) << report;
}

TEST(Simulator, IsNearSerialWhenAllFits) {
  const std::string report =
      run("device capacity=2GiB policy=fair\n"
          "job name=a iteration=50ms iterations=400 live=200MiB peak=600MiB\n"
          "job name=b iteration=30ms iterations=600 live=200MiB peak=600MiB\n");
  const double serial = figure(report, "", "serial_seconds");
  EXPECT_DOUBLE_EQ(serial, 38);
  EXPECT_LE(figure(report, "", "makespan_seconds"), serial * 1.03) << report;
  EXPECT_GE(figure(report, "", "makespan_seconds"), serial);
  EXPECT_EQ(figure(report, "a", "moved_bytes"), 0);
  EXPECT_THAT(report, HasSubstr("\"outcome\":\"finished\""));
}

TEST(Simulator, GivesTwiceTheWeightTwiceTheIterations) {
  const std::string report =
      run("device capacity=2GiB policy=fair until=200s\n"
          "job name=heavy weight=2 iteration=20ms iterations=100000 live=100MiB peak=300MiB\n"
          "job name=light weight=1 iteration=20ms iterations=100000 live=100MiB peak=300MiB\n");
  const double ratio =
      figure(report, "heavy", "iterations") / figure(report, "light", "iterations");
  EXPECT_NEAR(ratio, 2, 0.06) << report;
}

TEST(Simulator, RunsJobsSideBySideWhereTheyFit) {
  const auto makespan = [](const std::string& device) {
    const std::string report =
        run("device policy=fair interference=0 " + device +
            "\n"
            "job name=a iteration=50ms iterations=400 live=100MiB peak=600MiB\n"
            "job name=b iteration=50ms iterations=400 live=100MiB peak=600MiB\n");
    EXPECT_EQ(figure(report, "a", "moved_bytes"), 0) << report;
    return figure(report, "", "makespan_seconds");
  };
  EXPECT_GE(makespan("capacity=2GiB num_lanes=1"), 40);
  EXPECT_LT(makespan("capacity=2GiB num_lanes=2"), 21);
  EXPECT_LT(makespan("capacity=1200MiB num_lanes=2"), 21);
  // Together they need 1200 MiB: here they take turns.
  EXPECT_GE(makespan("capacity=1199MiB num_lanes=2"), 40);
}

TEST(Simulator, EachLaneTakesItsTurns) {
  const std::string report =
      run("device capacity=4GiB policy=fair num_lanes=2 interference=0 until=60s\n"
          "job name=a iteration=20ms iterations=100000 live=100MiB peak=300MiB\n"
          "job name=b iteration=20ms iterations=100000 live=100MiB peak=300MiB\n"
          "job name=c iteration=20ms iterations=100000 live=100MiB peak=300MiB\n"
          "job name=d iteration=20ms iterations=100000 live=100MiB peak=300MiB\n");
  for (const char* name : {"a", "b", "c", "d"})
    EXPECT_NEAR(figure(report, name, "served_seconds"), 30, 1.5) << report;
}

// Equal shares are of time, not of iterations.
TEST(Simulator, GivesLongIterationsNoMoreTime) {
  const std::string report =
      run("device capacity=2GiB policy=fair until=300s\n"
          "job name=long iteration=3s iterations=100000 live=100MiB peak=300MiB\n"
          "job name=short iteration=10ms iterations=100000 live=100MiB peak=300MiB\n");
  const double ratio =
      figure(report, "long", "served_seconds") / figure(report, "short", "served_seconds");
  EXPECT_NEAR(ratio, 1, 0.06) << report;
}

TEST(Simulator, MovesLiveBytesOnlyWhenTheyDoNotFit) {
  const std::string report =
      run("device capacity=1GiB policy=rr bandwidth=4GiB switch=1ms\n"
          "job name=a iteration=50ms iterations=200 live=600MiB peak=800MiB\n"
          "job name=b iteration=50ms iterations=200 live=600MiB peak=800MiB\n");
  EXPECT_GT(figure(report, "a", "moved_bytes"), 0) << report;
  EXPECT_EQ(figure(report, "a", "iterations"), 200);
  EXPECT_EQ(figure(report, "b", "iterations"), 200);
  // What a switch costs makes the quantum longer: the loss stays near the allowed 2 % each way.
  EXPECT_LT(figure(report, "", "makespan_seconds"), 20 * 1.1) << report;
}

TEST(Simulator, FinishesThreeJobsOfTwiceTheCapacity) {
  const std::string report =
      run("device capacity=1GiB policy=fair bandwidth=2GiB max_wait=4s\n"
          "job name=a at=0s iteration=60ms gap=2ms iterations=300 live=400MiB peak=700MiB\n"
          "job name=b at=1s iteration=40ms gap=60ms iterations=300 live=300MiB peak=700MiB\n"
          "job name=c at=2s iteration=20ms iterations=700 live=350MiB peak=800MiB weight=3\n");
  EXPECT_EQ(figure(report, "a", "iterations"), 300) << report;
  EXPECT_EQ(figure(report, "b", "iterations"), 300) << report;
  EXPECT_EQ(figure(report, "c", "iterations"), 700) << report;
}

// While one is in its gap the other computes: better than one after the other.
TEST(Simulator, UsesTheGapsOfOthers) {
  const std::string report =
      run("device capacity=1GiB policy=rr\n"
          "job name=reader iteration=50ms gap=200ms iterations=100 live=10MiB peak=20MiB\n"
          "job name=other iteration=50ms iterations=300 live=10MiB peak=20MiB\n");
  EXPECT_LT(figure(report, "", "makespan_seconds"), 0.85 * figure(report, "", "serial_seconds"))
      << report;
}

TEST(Simulator, DeniesWhatCannotFit) {
  const std::string report =
      run("device capacity=1GiB policy=rr\n"
          "job name=huge iteration=50ms iterations=10 live=100MiB peak=2GiB\n"
          "job name=other iteration=50ms iterations=10 live=10MiB peak=20MiB\n");
  EXPECT_THAT(report, HasSubstr(R"("name":"huge","user":"","device":0,"outcome":"denied")"))
      << report;
  EXPECT_EQ(figure(report, "other", "iterations"), 10);
}

TEST(Simulator, SaysTheSameTwice) {
  const std::string text =
      "device capacity=1GiB policy=fair\n"
      "job name=a iteration=30ms gap=3ms iterations=100 live=400MiB peak=600MiB\n"
      "job name=b iteration=20ms gap=50ms iterations=100 live=400MiB peak=600MiB\n";
  EXPECT_EQ(run(text), run(text));
}

TEST(Simulator, NamesTheLineItCannotRead) {
  const char* const kBad[] = {
      "",
      "device\njob name=a iterations=1\n",
      "device\njob name=a iteration=5 iterations=1\n",
      "device\njob name=a iteration=5ms iterations=1.5\n",
      "device\njob name=a iteration=5ms iterations=1 colour=red\n",
      "device\njob name=\"a iteration=5ms iterations=1\n",
      "device\njob name=a iteration=5ms iterations=1 live=2MiB peak=1MiB\n",
      "device bandwidth=0B\njob iteration=5ms iterations=1\n",
      "device policy=none\njob iteration=5ms iterations=1\n",
      "gadget\n",
  };
  for (const char* const text : kBad) {
    const auto report = run_scenario(text);
    ASSERT_FALSE(report.has_value()) << text;
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(run_scenario("device\njob name=a iterations=1\n").error().message(),
              HasSubstr("line 2"));
}

}  // namespace
}  // namespace gpushare::sim
