#include "csrc/daemon/files/account.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gpushare::daemon {
namespace {

TEST(Account, IsOneLineThatSaysEachField) {
  Account account;
  account.id = "0123456789ab";
  account.epoch = 7;
  account.job = JobId{3};
  account.name = "first\nsecond \xff";
  account.end = JobEnd::kDied;
  account.held = seconds(2);
  account.waited = millis(3);
  account.peak = mib(5);
  const std::string line = line_of(account);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["v"], kAccountVersion);
  EXPECT_EQ(json["id"], "0123456789ab");
  EXPECT_EQ(json["epoch"], 7);
  EXPECT_EQ(json["job"], 3);
  EXPECT_EQ(json["end"], "died");
  EXPECT_EQ(json["held_ns"], 2'000'000'000);
  EXPECT_EQ(json["waited_ns"], 3'000'000);
  EXPECT_EQ(json["peak_bytes"], 5 << 20);
  EXPECT_TRUE(json["wait_status"].is_null()) << "it is not known";
  account.wait_status = 9;
  EXPECT_EQ(nlohmann::json::parse(line_of(account))["wait_status"], 9);
}

TEST(Account, IsReadAsItWasWritten) {
  Account account;
  account.id = "0123456789ab";
  account.epoch = 7;
  account.job = JobId{3};
  account.uid = 1000;
  account.name = "two \"words\"";
  account.end = JobEnd::kCarriedOn;
  account.end_unix_ns = 5;
  account.wait_status = 9;
  account.held = seconds(2);
  account.iterations = 4;
  account.peak = mib(5);
  const std::string line = line_of(account);
  const auto read = read_account(line);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(line_of(*read), line);
  EXPECT_TRUE(line.starts_with(beginning_of(account))) << beginning_of(account);
  account.wait_status.reset();
  EXPECT_EQ(read_account(line_of(account))->wait_status, std::nullopt);
  for (const char* text : {"", "{}", "[1]", "{\"id\": 5}", R"({"id": "a", "epoch": "b"})"})
    EXPECT_EQ(read_account(text).error().code(), StatusCode::kProtocol) << text;
}

// The state file of a coordinator before this one may have such a line.
TEST(Account, OfTheFirstVersionHasNoGang) {
  Account account;
  account.gang = "ranks-1";
  account.ranks = 2;
  auto json = nlohmann::json::parse(line_of(account));
  EXPECT_EQ(read_account(json.dump())->gang, "ranks-1");
  EXPECT_EQ(read_account(json.dump())->ranks, 2U);
  json["v"] = 1;
  json.erase("gang");
  json.erase("ranks");
  ASSERT_TRUE(read_account(json.dump()).has_value());
  EXPECT_EQ(read_account(json.dump())->gang, "");
}

TEST(Account, HasAnIdOfTheProcessAlone) {
  EXPECT_EQ(host_job_id(41, 1000), host_job_id(41, 1000));
  EXPECT_EQ(host_job_id(41, 1000).size(), 12U);
  EXPECT_NE(host_job_id(41, 1000).substr(0, 6), host_job_id(42, 1000).substr(0, 6));
  EXPECT_NE(host_job_id(41, 1000).substr(0, 6), host_job_id(41, 1001).substr(0, 6));
}

TEST(Account, NamesTheHostByLettersThatAFileMayHave) {
  const std::string name = host_name();
  EXPECT_FALSE(name.empty());
  EXPECT_EQ(name.find_first_of("/@ \n"), std::string::npos);
}

}  // namespace
}  // namespace gpushare::daemon
