#include "csrc/daemon/config/config_file.h"

#include <sys/stat.h>

#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/daemon/config/user_settings.h"
#include "csrc/wire/priority.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ConfigFile, ReadsEveryKey) {
  DaemonOptions options;
  const Status status = read_config_text(R"(
[coordinator]
socket = "/run/gpushare/sock"
policy = "rr"
max_wait = 5
switch_loss = 0.05
num_lanes = 2
memory_wait = "2 min"
min_quantum = "100ms"
gap_poll = 0.02
transfer_budget = "500MiB"
linger = "never"
[host]
budget = "8GiB"
spill_dir = "/var/tmp"
[device.cpu]
capacity = "2GiB"
reserve = 67108864
[log]
level = "debug"
file = "/tmp/log"
)",
                                         "c.toml", options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(options.socket, "/run/gpushare/sock");
  EXPECT_EQ(options.coordinator.policy, "rr");
  EXPECT_EQ(options.coordinator.max_wait, seconds(5));
  EXPECT_EQ(options.coordinator.switch_loss, 0.05);
  EXPECT_EQ(options.num_lanes, 2U);
  EXPECT_EQ(options.coordinator.memory_wait, seconds(120));
  EXPECT_EQ(options.coordinator.min_quantum, millis(100));
  EXPECT_EQ(options.coordinator.gap_poll, millis(20));
  EXPECT_EQ(options.coordinator.transfer_budget, mib(500));
  EXPECT_FALSE(options.linger.has_value());
  EXPECT_EQ(options.host_budget, gib(8));
  EXPECT_EQ(options.coordinator.spill_dir, "/var/tmp");
  EXPECT_EQ(options.capacity, gib(2));
  EXPECT_EQ(options.reserve, mib(64));
  EXPECT_EQ(options.log_level, log::Level::kDebug);
  EXPECT_EQ(options.log_file, "/tmp/log");
  EXPECT_THAT(options.warnings, IsEmpty());
}

struct Bad {
  const char* text;
  const char* error;
};

std::ostream& operator<<(std::ostream& out, const Bad& bad) { return out << bad.text; }

class ConfigFileBad : public ::testing::TestWithParam<Bad> {};

TEST_P(ConfigFileBad, NamesFileLineKeyValueAndWhatIsAllowed) {
  DaemonOptions options;
  const Status status = read_config_text(GetParam().text, "c.toml", options);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Texts,
    ConfigFileBad,
    ::testing::Values(
        Bad{"[coordinator]\npolicy = \"best\"",
            "c.toml:2: coordinator.policy: bad value \"best\"; allowed: fair, rr, fifo, srtf, "
            "priority, deadline, pack, srtf+pack or deadline+pack"},
        Bad{"[coordinator]\nmax_wait = 0",
            "c.toml:2: coordinator.max_wait: bad value \"0\"; allowed: a time above 0"},
        Bad{"[coordinator]\nmax_wait = [1]",
            "c.toml:2: coordinator.max_wait: bad value [ 1 ]; allowed: a time above 0"},
        Bad{"[coordinator]\nmax_wait = \"50\"",
            "c.toml:2: coordinator.max_wait: bad value \"50\"; say 50ms or 50s"},
        Bad{"[coordinator]\nlinger = true",
            "coordinator.linger: bad value \"true\"; allowed: a time"},
        Bad{"[coordinator]\nnum_lanes = 0",
            "coordinator.num_lanes: bad value \"0\"; allowed: a whole number from 1 to 16"},
        Bad{"[coordinator]\nnum_lanes = 1.5",
            "coordinator.num_lanes: bad value \"1.5\"; allowed: a whole number from 1 to 16"},
        Bad{"[coordinator]\nswitch_loss = 0.6",
            "coordinator.switch_loss: bad value \"0.6\"; allowed: a number above 0, at most 0.5"},
        Bad{"[coordinator]\nclass_floor = 0.4",
            "coordinator.class_floor: bad value \"0.4\"; allowed: a number from 0 to 0.3"},
        Bad{"[coordinator]\nsocket_mode = \"0770\"", "allowed: an octal mode like \"0600\""},
        Bad{"[host]\nspill_dir = \"/a\\tb\"", "allowed: an absolute path of printable characters"},
        Bad{"[coordinator]\nsocket = \"sock\"", "allowed: an absolute path"},
        Bad{"[device.cpu]\ncapacity = \"1MiB\"",
            "device.cpu.capacity: bad value \"1MiB\"; allowed: a size of at least 2 MiB"},
        Bad{"[device.cuda]\ncapacity = \"1MiB\"",
            "device.cuda.capacity: bad value \"1MiB\"; allowed: a size of at least 2 MiB"},
        Bad{"[device.cpu]\ncapacity = \"much\"", "allowed: a size of at least 2 MiB"},
        Bad{"[host]\nspill_dir = \"x\"", "host.spill_dir: bad value \"x\"; allowed: an absolute"},
        Bad{"[log]\nlevel = \"loud\"",
            "log.level: bad value \"loud\"; allowed: debug, info, warn, error or off"},
        Bad{"[user.0]\nweight = 0", "c.toml:2: user.0: weight: bad value \"0\"; allowed: a number"},
        Bad{"[user.default]\nmemory_limit = \"much\"",
            "c.toml:2: user.default: memory_limit: bad value \"much\"; allowed: a size"},
        Bad{"[user.0]\nshare_limit = 1.5",
            "user.0: share_limit: bad value \"1.5\"; allowed: a number from 0.01 to 1"},
        Bad{"[user.0]\nelastic = 1", "user.0: elastic: bad value \"1\"; allowed: true or false"},
        Bad{"[user.0]\nmax_priority = \"high\"",
            "max_priority: bad value \"high\"; allowed: guaranteed, interactive, normal or"},
        Bad{"[user.0]\nmax_weight = 0", "max_weight: bad value \"0\"; allowed: a number"},
        Bad{"[user.0]\nmax_jobs = 1.5", "max_jobs: bad value \"1.5\"; allowed: a whole number"},
        Bad{"[user.0]\nweight = [1]", "user.0: weight: bad value \"?\""},
        Bad{"[coordinator\n", "c.toml:1: "}));

TEST(ConfigFile, WarnsOfWhatNothingReadsAndNamesTheNearest) {
  DaemonOptions options;
  const Status status = read_config_text(R"(
linger = 1
[coordinator]
polcy = "rr"
capacity = "2GiB"
xyzzy = 1
[host]
pinned = 1
[job]
prio = "left to the jobs' side"
[device.gpu]
capacity = "2GiB"
[foo]
polcy = 1
)",
                                         "c.toml", options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_THAT(options.warnings,
              ::testing::UnorderedElementsAre(
                  "c.toml:2: unknown key linger; did you mean coordinator.linger?",
                  "c.toml:4: unknown key coordinator.polcy; did you mean coordinator.policy?",
                  "c.toml:5: unknown key coordinator.capacity; did you mean device.cpu.capacity?",
                  "c.toml:6: unknown key coordinator.xyzzy",
                  "c.toml:11: unknown table [device.gpu]", "c.toml:13: unknown table [foo]"));
}

TEST(ConfigFile, TimesInQuotesHaveAUnitOrAreZero) {
  DaemonOptions options;
  const Status status =
      read_config_text("[coordinator]\nmin_quantum = \"0\"\nlinger = \"3s\"\n", "c.toml", options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(options.coordinator.min_quantum, Nanos{0});
  EXPECT_EQ(options.linger, seconds(3));
}

TEST(ConfigFile, ReadsWhatIsSetForUsers) {
  DaemonOptions options;
  const Status status = read_config_text(R"(
[user.root]
weight = 2.5
elastic = true
[user.1234567]
memory_limit = "3GiB"
[user.default]
memory_limit = "8GiB"
[user.no-such-user-here]
weight = 2
[user.77]
colour = 1
)",
                                         "c.toml", options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(options.coordinator.users.of(0).weight, 2.5);
  EXPECT_EQ(options.coordinator.users.of(0).memory_limit, gib(8)) << "as by default";
  EXPECT_TRUE(options.coordinator.users.of(0).is_elastic);
  EXPECT_FALSE(options.coordinator.users.of(4242).is_elastic);
  EXPECT_EQ(options.coordinator.users.label(0), "root");
  EXPECT_EQ(options.coordinator.users.of(1234567).memory_limit, gib(3));
  EXPECT_EQ(options.coordinator.users.of(1234567).weight, 1);
  EXPECT_EQ(options.coordinator.users.of(4242).memory_limit, gib(8));
  EXPECT_EQ(options.coordinator.users.label(4242), "user 4242");
  EXPECT_THAT(options.warnings,
              ::testing::UnorderedElementsAre(
                  "c.toml:9: [user.no-such-user-here]: no user of this machine has that name",
                  "c.toml:12: user.77: unknown key colour"));
}

TEST(ConfigFile, WhatASharedCoordinatorsUsersMayHaveIsLittleUnlessItIsSaid) {
  DaemonOptions options;
  const Status status = read_config_text(R"(
[coordinator]
socket_mode = "0660"
[user.77]
max_priority = "interactive"
max_weight = 2.5
max_jobs = 3
)",
                                         "c.toml", options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(options.is_for_others());
  constexpr std::uint32_t kOwner = 5;
  make_users_safe(kOwner, options.coordinator.users);
  EXPECT_EQ(options.coordinator.users.of(77).max_priority, wire::Priority::kInteractive);
  EXPECT_EQ(options.coordinator.users.of(77).max_weight, 2.5);
  EXPECT_EQ(options.coordinator.users.of(77).max_jobs, 3U);
  EXPECT_EQ(options.coordinator.users.of(4242).max_priority, wire::Priority::kNormal);
  EXPECT_EQ(options.coordinator.users.of(4242).max_jobs, 64U);
  for (const std::uint32_t trusted : {kOwner, 0U}) {
    EXPECT_EQ(options.coordinator.users.of(trusted).max_priority, wire::Priority::kGuaranteed);
    EXPECT_GT(options.coordinator.users.of(trusted).max_jobs, 10'000U);
  }
}

TEST(ConfigFile, AFileThatMustExistDoes) {
  DaemonOptions options;
  EXPECT_TRUE(read_config_file("/nonexistent/c.toml", false, options).ok());
  const Status status = read_config_file("/nonexistent/c.toml", true, options);
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/c.toml"));
}

// The daemon waited for the writer of such a pipe.
TEST(ConfigFile, APipeAndADeviceAreRefused) {
  const testing::TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    DaemonOptions options;
    const Status status = read_config_file(path, true, options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(status.message(),
                HasSubstr(path + " is a pipe or a device, and no file of settings"));
  }
  DaemonOptions options;
  EXPECT_TRUE(read_config_file("/dev/null", true, options).ok());
}

}  // namespace
}  // namespace gpushare::daemon
