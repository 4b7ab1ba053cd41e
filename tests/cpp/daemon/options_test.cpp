#include "csrc/daemon/config/options.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/daemon/machine/machine_memory.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/policies/policy.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kUuid = "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
constexpr auto kGpu = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

// Sets variables until the end of a scope.
class Variables {
 public:
  Variables(std::initializer_list<std::pair<const char*, const char*>> values) : values_(values) {
    for (const auto& [name, value] : values_)
      ::setenv(name, value, 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_)
      ::unsetenv(name);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

// The environment of a user without settings; put back afterwards.
class Options : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
    ::unsetenv("GPUSHARE_SOCKET");
    ::unsetenv("GPUSHARE_CONFIG");
    ::unsetenv("GPUSHARE_DEVICES");
    ::unsetenv("XDG_RUNTIME_DIR");
  }
  void TearDown() override {
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("GPUSHARE_SOCKET");
    ::unsetenv("GPUSHARE_CONFIG");
    ::unsetenv("GPUSHARE_DEVICES");
    ::unsetenv("XDG_RUNTIME_DIR");
  }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  static DaemonOptions parsed(const std::vector<std::string>& arguments) {
    const auto result = parse_command_line(arguments);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
    return result ? result->options : DaemonOptions{};
  }
  static std::string error_of(const std::vector<std::string>& arguments) {
    const auto result = parse_command_line(arguments);
    return result ? "no error" : result.error().message();
  }

  testing::TempFolder folder_;
};

TEST_F(Options, DefaultsFollowTheMachine) {
  const DaemonOptions options = parsed({});
  const auto memory = machine_memory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_LE(options.capacity, *memory / 2);
  EXPECT_GT(options.capacity, *memory / 2 - mib(4));
  EXPECT_EQ(options.host_budget, options.capacity);
  EXPECT_EQ(options.coordinator.policy, "fair");
  EXPECT_EQ(options.linger, seconds(10));
  EXPECT_EQ(options.socket_mode, 0600U);
  EXPECT_EQ(options.log_level, log::Level::kInfo);
  EXPECT_EQ(options.coordinator.spill_dir, "");
  EXPECT_TRUE(options.lanes);
  EXPECT_EQ(options.num_lanes, 0U);
  EXPECT_GE(default_pack_lanes(options), 2U);
  EXPECT_LE(default_pack_lanes(options), sched::kMaxLanes);
  EXPECT_FALSE(options.daemonize);
}

TEST_F(Options, EveryOptionIsRead) {
  const DaemonOptions options = parsed(
      {"--socket",          "/tmp/s", "--device",      "cpu",  "--capacity",       "2GiB",
       "--reserve",         "64MiB",  "--policy",      "fifo", "--min-quantum-ms", "100",
       "--max-wait-ms",     "5000",   "--switch-loss", "0.1",  "--memory-wait-s",  "30",
       "--gap-poll-ms",     "5",      "--linger-s",    "3",    "--spill-dir",      "/var/tmp",
       "--host-budget",     "64GiB",  "--log-level",   "warn", "--log-file",       "/tmp/l",
       "--host-ram-budget", "4GiB",   "--mode",        "0660", "--lanes",          "off",
       "--transfer-budget", "1MiB",   "--num-lanes",   "16",   "--socket-group",   "root",
       "--daemonize"});
  EXPECT_EQ(options.socket, "/tmp/s");
  EXPECT_EQ(options.capacity, gib(2));
  EXPECT_EQ(options.reserve, mib(64));
  EXPECT_EQ(options.coordinator.policy, "fifo");
  EXPECT_EQ(options.coordinator.min_quantum, millis(100));
  EXPECT_EQ(options.coordinator.max_wait, seconds(5));
  EXPECT_EQ(options.coordinator.switch_loss, 0.1);
  EXPECT_EQ(options.num_lanes, 16U);
  EXPECT_EQ(options.coordinator.memory_wait, seconds(30));
  EXPECT_EQ(options.coordinator.gap_poll, millis(5));
  EXPECT_EQ(options.linger, seconds(3));
  EXPECT_EQ(options.coordinator.spill_dir, "/var/tmp");
  EXPECT_EQ(options.host_budget, gib(64));
  EXPECT_EQ(options.host_ram_budget, gib(4));
  EXPECT_EQ(options.coordinator.transfer_budget, mib(1));
  EXPECT_EQ(options.log_level, log::Level::kWarn);
  EXPECT_EQ(options.log_file, "/tmp/l");
  EXPECT_EQ(options.socket_mode, 0660U);
  EXPECT_EQ(options.socket_group, 0U);
  EXPECT_FALSE(options.lanes);
  EXPECT_TRUE(options.daemonize);
}

TEST_F(Options, TheHostBudgetIsRamAFileOrRamAndThenAFile) {
  EXPECT_EQ(host_budgets(parsed({"--host-budget", "64GiB"})), (HostBytes{gib(64), Bytes{0}}));
  EXPECT_EQ(host_budgets(parsed({"--host-budget", "64GiB", "--spill-dir", "/var/tmp"})),
            (HostBytes{Bytes{0}, gib(64)}));
  EXPECT_EQ(host_budgets(parsed({"--host-budget", "64GiB", "--spill-dir", "/var/tmp",
                                 "--host-ram-budget", "4GiB"})),
            (HostBytes{gib(4), gib(60)}));
  EXPECT_EQ(host_budgets(parsed({"--host-budget", "4097KiB"})), (HostBytes{mib(4), Bytes{0}}))
      << "whole chunks";
}

TEST_F(Options, RamBeforeTheFileIsPartOfTheBudgetAndNeedsAFile) {
  EXPECT_EQ(error_of({"--host-ram-budget", "4GiB"}),
            "--host-ram-budget: bad value \"4.0 GiB\"; allowed: only with a --spill-dir for the "
            "rest; without one all of the host budget is RAM");
  EXPECT_EQ(
      error_of({"--host-budget", "2GiB", "--spill-dir", "/var/tmp", "--host-ram-budget", "4GiB"}),
      "--host-ram-budget: bad value \"4.0 GiB\"; allowed: at most the host budget of 2.0 "
      "GiB, part of which it is; raise --host-budget");
}

TEST_F(Options, TheUsersFileIsReadAndOptionsWin) {
  write("gpushare/config.toml", "[coordinator]\npolicy = \"rr\"\nmax_wait = 7\n");
  const DaemonOptions options = parsed({"--policy", "fifo"});
  EXPECT_EQ(options.coordinator.policy, "fifo");
  EXPECT_EQ(options.coordinator.max_wait, seconds(7));
}

TEST_F(Options, ConfigReplacesTheDefaultFiles) {
  write("gpushare/config.toml", "[coordinator]\npolicy = \"rr\"\n");
  const std::string other = write("other.toml", "[coordinator]\nmax_wait = 3\n");
  const DaemonOptions options = parsed({"--config", other});
  EXPECT_EQ(options.coordinator.policy, "fair");
  EXPECT_EQ(options.coordinator.max_wait, seconds(3));
  ::setenv("GPUSHARE_CONFIG", other.c_str(), 1);
  EXPECT_EQ(parsed({}).coordinator.max_wait, seconds(3));
}

TEST_F(Options, SocketComesFromOptionEnvironmentFileOrDefault) {
  EXPECT_THAT(parsed({}).socket, StartsWith("/tmp/gpushare-"));
  ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  EXPECT_EQ(parsed({}).socket, folder_.path() + "/gpushare/sock");
  write("gpushare/config.toml", "[coordinator]\nsocket = \"/tmp/of-file\"\n");
  EXPECT_EQ(parsed({}).socket, "/tmp/of-file");
  ::setenv("GPUSHARE_SOCKET", "/tmp/of-environment", 1);
  EXPECT_EQ(parsed({}).socket, "/tmp/of-environment");
  EXPECT_EQ(parsed({"--socket", "/tmp/of-option"}).socket, "/tmp/of-option");
}

TEST_F(Options, SocketNoneIsForJobsOnly) {
  ::setenv("GPUSHARE_SOCKET", "none", 1);
  EXPECT_THAT(parsed({}).socket, StartsWith("/tmp/gpushare-"));
  write("gpushare/config.toml", "[coordinator]\nsocket = \"none\"\n");
  EXPECT_THAT(parsed({}).socket, StartsWith("/tmp/gpushare-"));
}

TEST_F(Options, BadValuesNameOptionValueAndWhatIsAllowed) {
  EXPECT_EQ(
      error_of({"--policy", "best"}),
      "--policy: bad value \"best\"; allowed: fair, rr, fifo, srtf, priority, deadline, pack, "
      "srtf+pack or deadline+pack");
  for (const std::string& name : sched::policy_names())
    EXPECT_THAT(error_of({"--policy", "best"}), HasSubstr(name));
  EXPECT_EQ(error_of({"--device", "cuda:0"}),
            "--device: bad value \"cuda:0\"; allowed: cpu, cpu:NUMBER, cuda:GPU-UUID or "
            "cuda:MIG-UUID, as "
            "nvidia-smi -L says");
  EXPECT_THAT(error_of({"--capacity", "1"}), HasSubstr("a size of at least 2 MiB"));
  EXPECT_THAT(error_of({"--max-wait-ms", "0"}), HasSubstr("--max-wait-ms: bad value \"0\""));
  EXPECT_EQ(error_of({"--transfer-budget", "500"}),
            "--transfer-budget: bad value \"500\"; allowed: 0, or a size of at least 1 MiB, like "
            "\"500MiB\"");
  EXPECT_THAT(error_of({"--mode", "0777"}), HasSubstr("octal"));
  EXPECT_EQ(
      error_of({"--socket-group", "no-such-group"}),
      "--socket-group: bad value \"no-such-group\"; allowed: a group of this machine, by name "
      "or number");
  EXPECT_THAT(error_of({"--socket-folder", "relative"}), HasSubstr("absolute path"));
  EXPECT_THAT(error_of({"--socket-folder", "/" + std::string(50, 'a')}), HasSubstr("50 bytes"));
  EXPECT_THAT(error_of({"--socket", "relative"}), HasSubstr("absolute path"));
  EXPECT_THAT(error_of({"--capacity", "64MiB", "--reserve", "63MiB"}),
              HasSubstr("at least 2 MiB less than the capacity of 64.0 MiB"));
  EXPECT_THAT(error_of({"--config", "/nonexistent/c.toml"}), HasSubstr("/nonexistent/c.toml"));
  ::setenv("GPUSHARE_SOCKET", "relative", 1);
  EXPECT_THAT(error_of({}), HasSubstr("GPUSHARE_SOCKET: bad value \"relative\""));
}

TEST_F(Options, AServiceSaysTheFolderOfItsSocket) {
  ::setenv("GPUSHARE_SOCKET", "/tmp/of-environment", 1);
  EXPECT_EQ(parsed({"--socket-folder", "/run/gpushare"}).socket, "/run/gpushare/sock");
  EXPECT_EQ(
      parsed({"--socket-folder", "/run/gpushare", "--device", kGpu, "--capacity", "1GiB"}).socket,
      "/run/gpushare/" + std::string(kUuid) + ".sock");
}

TEST_F(Options, AFileSaysWhoMayOpenTheSocket) {
  write("gpushare/config.toml", "[coordinator]\nsocket_mode = \"0660\"\nsocket_group = \"4242\"\n");
  EXPECT_EQ(parsed({}).socket_mode, 0660U);
  EXPECT_EQ(parsed({}).socket_group, 4242U);
  EXPECT_EQ(parsed({"--mode", "0600"}).socket_mode, 0600U);
}

TEST_F(Options, ACudaDeviceHasASocketOfItsOwn) {
  EXPECT_THAT(parsed({"--device", kGpu, "--capacity", "80GiB"}).socket,
              AllOf(StartsWith("/tmp/gpushare-"), EndsWith("/" + std::string(kUuid) + ".sock")));
  ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  EXPECT_EQ(parsed({"--capacity", "80GiB", "--device", kGpu}).socket,
            folder_.path() + "/gpushare/" + kUuid + ".sock");
}

TEST_F(Options, TheSizesOfItsKindOfDeviceAreTakenFromAFile) {
  write("gpushare/config.toml",
        "[device.cpu]\ncapacity = \"2GiB\"\nreserve = \"64MiB\"\n"
        "[device.cuda]\ncapacity = \"80GiB\"\nreserve = \"1GiB\"\n");
  const DaemonOptions cpu = parsed({});
  EXPECT_EQ(cpu.capacity, gib(2));
  EXPECT_EQ(cpu.reserve, mib(64));
  const DaemonOptions cuda = parsed({"--device", kGpu});
  EXPECT_EQ(cuda.coordinator.device, kGpu);
  EXPECT_EQ(cuda.capacity, gib(80));
  EXPECT_EQ(cuda.reserve, gib(1));
  const DaemonOptions set = parsed({"--device", kGpu, "--capacity", "1GiB"});
  EXPECT_EQ(set.capacity, gib(1));
  EXPECT_EQ(set.reserve, Bytes{0}) << "a file's reserve is of the capacity there";
  EXPECT_THAT(cuda.warnings, ::testing::IsEmpty());
}

TEST_F(Options, SeveralDevicesComeFromTheCommandLineTheVariableOrAFile) {
  const std::vector<DeviceOptions> two{{"cpu:0", gib(2)}, {"cpu:1", mib(500)}};
  EXPECT_EQ(parsed({"--capacity", "1GiB"}).devices, (std::vector<DeviceOptions>{{"cpu", gib(1)}}));
  const DaemonOptions given = parsed({"--devices", "cpu:0=2GiB,cpu:1=500MiB"});
  EXPECT_EQ(given.devices, two);
  EXPECT_EQ(given.coordinator.device, "cpu:0");
  EXPECT_EQ(given.socket, default_socket_path("cpu"));
  write("gpushare/config.toml", "[coordinator]\ndevices = \"cpu:0=2GiB,cpu:1=500MiB\"\n");
  EXPECT_EQ(parsed({}).devices, two);
  EXPECT_EQ(parsed({"--device", "cpu", "--capacity", "1GiB"}).devices,
            (std::vector<DeviceOptions>{{"cpu", gib(1)}}))
      << "a single device that is named wins over a file's";
  ::setenv("GPUSHARE_DEVICES", "cpu:3=1GiB", 1);
  EXPECT_EQ(parsed({}).devices, (std::vector<DeviceOptions>{{"cpu:3", gib(1)}}));
  EXPECT_EQ(parsed({"--devices", "cpu:4=2GiB"}).devices.front().name, "cpu:4");
  EXPECT_EQ(parsed({"--device", "cpu", "--capacity", "1GiB"}).devices.size(), 1U);
  ::setenv("GPUSHARE_DEVICES", "cpu:3", 1);
  EXPECT_THAT(error_of({}), ::testing::StartsWith("GPUSHARE_DEVICES: bad value \"cpu:3\""));
}

TEST_F(Options, AVariableBeatsAFileAndAnOptionBeatsBoth) {
  write("gpushare/config.toml",
        "[coordinator]\nlinger = \"1s\"\npolicy = \"rr\"\n[host]\nspill_dir = \"/tmp\"\n");
  EXPECT_EQ(parsed({}).linger, seconds(1));
  const Variables variables{{"GPUSHARE_LINGER", "2min"},
                            {"GPUSHARE_MEMORY_WAIT", "0"},
                            {"GPUSHARE_CAPACITY", "3GiB"},
                            {"GPUSHARE_POLICY", ""},
                            {"GPUSHARE_SPILL_DIR", ""}};
  const DaemonOptions options = parsed({});
  EXPECT_EQ(options.linger, seconds(120));
  EXPECT_EQ(options.coordinator.memory_wait, Nanos{0});
  EXPECT_EQ(options.capacity, gib(3));
  EXPECT_EQ(options.coordinator.policy, "rr") << "an empty variable counts as unset";
  EXPECT_EQ(options.coordinator.spill_dir, "") << "except where empty means RAM";
  EXPECT_EQ(parsed({"--linger-s", "never"}).linger, std::nullopt);
}

TEST_F(Options, AVariableNeedsAUnit) {
  const Variables variables{{"GPUSHARE_MAX_WAIT", "5"}};
  EXPECT_THAT(error_of({}), ::testing::StartsWith("GPUSHARE_MAX_WAIT: bad value \"5\""));
  EXPECT_EQ(parsed({"--max-wait-ms", "5"}).coordinator.max_wait, millis(5))
      << "what an option says is not read from the variable";
}

TEST_F(Options, AReserveInTheEnvironmentIsThatOfAGpu) {
  const Variables variables{{"GPUSHARE_RESERVE", "1GiB"}, {"GPUSHARE_CAPACITY", "8GiB"}};
  EXPECT_EQ(parsed({}).reserve, Bytes{0});
  EXPECT_EQ(parsed({"--device", kGpu}).reserve, gib(1));
}

TEST_F(Options, AListOfDevicesIsTakenWholeOrNotAtAll) {
  for (const char* bad : {"", "cpu:0", "cpu:0=", "cpu:0=1MiB", "gpu=2GiB", "cpu:0=2GiB,cpu:0=2GiB",
                          "cpu:0=2GiB,,cpu:1=2GiB", "cpu:64=2GiB", "cpu:0=-1",
                          "cpu=2GiB,cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"}) {
    EXPECT_THAT(error_of({"--devices", bad}), ::testing::StartsWith("--devices: bad value")) << bad;
  }
  EXPECT_THAT(error_of({"--devices", "cpu:0=2GiB", "--device", "cpu"}),
              ::testing::HasSubstr("give one of them"));
}

TEST_F(Options, SeveralGpusHaveOneSocketAndTheSizesOfTheirKind) {
  const std::string other = std::string(kGpu).replace(9, 1, "f");
  const std::string both = std::string(kGpu) + "," + other;
  const DaemonOptions all = parsed(
      {"--devices", std::string(kGpu) + "=80GiB," + other + "=40GiB", "--device-memory", "80GiB"});
  EXPECT_THAT(all.socket, EndsWith("/cuda.sock"));
  EXPECT_EQ(all.devices[0].reserve, mib(80 * 1024 / 50 / 2 * 2)) << "what drivers need";
  EXPECT_EQ(all.devices[1].reserve, mib(1536));
  const DaemonOptions small =
      parsed({"--devices", std::string(kGpu) + "=80GiB," + other + "=4GiB", "--reserve", "4GiB"});
  EXPECT_EQ(small.devices.size(), 1U) << "as of one that drives a display";
  write("gpushare/config.toml", "[device.cuda]\ncapacity = \"60GiB\"\nreserve = \"1GiB\"\n");
  EXPECT_THAT(error_of({"--device", "cuda"}), HasSubstr("name the devices in GPUSHARE_DEVICES"));
  const Variables variables{{"GPUSHARE_DEVICES", both.c_str()}};
  const DaemonOptions service = parsed({"--device", "cuda", "--socket-folder", "/run/gpushare"});
  EXPECT_EQ(service.devices,
            (std::vector<DeviceOptions>{{kGpu, gib(60), gib(1)}, {other, gib(60), gib(1)}}));
  EXPECT_EQ(service.socket, "/run/gpushare/cuda.sock");
}

TEST_F(Options, OfAllOfACudaDeviceDriversAndLibrariesKeepAPart) {
  const auto reserve_of = [&](const char* memory) {
    const DaemonOptions options = parsed({"--device", kGpu, "--device-memory", memory});
    EXPECT_EQ(options.capacity, options.device_memory);
    return *options.reserve;
  };
  EXPECT_EQ(reserve_of("8GiB"), mib(818)) << "a tenth, whole chunks";
  EXPECT_EQ(reserve_of("24GiB"), mib(1536));
  EXPECT_EQ(reserve_of("140GiB"), mib(2866)) << "a fiftieth";
  EXPECT_EQ(parsed({"--device", kGpu, "--device-memory", "24GiB", "--reserve", "0"}).reserve,
            Bytes{0});
  const DaemonOptions set =
      parsed({"--device", kGpu, "--device-memory", "24GiB", "--capacity", "8GiB"});
  EXPECT_EQ(set.capacity, gib(8));
  EXPECT_EQ(set.reserve, Bytes{0}) << "a capacity that was set is the jobs'";
  EXPECT_EQ(parsed({}).reserve, Bytes{0}) << "of a CPU";
}

TEST_F(Options, TheMemoryOfACudaDeviceIsNotGuessed) {
  EXPECT_EQ(error_of({"--device", kGpu}),
            std::string("--capacity: the memory of ") + kGpu +
                " is not known here. Give it with --capacity, GPUSHARE_CAPACITY, or capacity under "
                "[device.cuda] in a file");
  const DaemonOptions cuda = parsed({"--device", kGpu, "--capacity", "8GiB"});
  EXPECT_EQ(cuda.host_budget, parsed({}).host_budget) << "what is spilled goes to RAM";
}

TEST_F(Options, UnknownOptionsAreErrors) {
  EXPECT_THAT(error_of({"--polcy", "rr"}), HasSubstr("--polcy"));
  EXPECT_THAT(error_of({"--policy"}), HasSubstr("--policy"));
}

TEST_F(Options, HelpAndVersionAreTexts) {
  const auto help = parse_command_line({"--help"});
  ASSERT_TRUE(help.has_value());
  EXPECT_THAT(help->text, HasSubstr("--spill-dir"));
  const auto version = parse_command_line({"--version"});
  ASSERT_TRUE(version.has_value());
  EXPECT_THAT(version->text, StartsWith("gpushared "));
}

}  // namespace
}  // namespace gpushare::daemon
