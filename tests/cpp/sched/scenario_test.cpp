// tests/scenarios/*.txt: what the coordinator says must be what the file says. With
// GPUSHARE_REWRITE_SCENARIOS=1 in the environment the files are written anew; commit only what you
// understand.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/sched_scenario_runner.h"

namespace gpushare::sched::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(GS_SOURCE_DIR) / "tests/scenarios")) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Scenario : public ::testing::TestWithParam<std::string> {};

TEST_P(Scenario, SaysWhatTheFileSays) {
  const fs::path path = fs::path(GS_SOURCE_DIR) / "tests/scenarios" / (GetParam() + ".txt");
  const std::string expected = read_file(path);
  const auto actual = rewrite_scenario(expected);
  ASSERT_TRUE(actual.has_value()) << actual.error().to_string();
  if (std::getenv("GPUSHARE_REWRITE_SCENARIOS") != nullptr) {
    std::ofstream(path) << *actual;
    return;
  }
  EXPECT_EQ(*actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Golden,
                         Scenario,
                         ::testing::ValuesIn(scenario_names()),
                         [](const auto& scenario) { return scenario.param; });

TEST(ScenarioRunner, NamesTheLineItCannotRead) {
  const auto unknown = rewrite_scenario("options policy=rr\nfly job=1\n");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().message(), ::testing::HasSubstr("line 2"));
  EXPECT_FALSE(rewrite_scenario("options policy=none\n").has_value());
  EXPECT_FALSE(rewrite_scenario("options policy=rr\nhello job=1 colour=red\n").has_value());
}

TEST(ScenarioRunner, ReplacesOldExpectations) {
  const auto text = rewrite_scenario("options policy=rr\nhello job=1 pid=5\n  nonsense\n");
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, ::testing::HasSubstr("welcome job=1"));
  EXPECT_THAT(*text, ::testing::Not(::testing::HasSubstr("nonsense")));
}

}  // namespace
}  // namespace gpushare::sched::testing
