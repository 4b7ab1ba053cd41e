#include "csrc/daemon/server/surroundings.h"

#include <csignal>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/daemon/files/device_claim.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using ::testing::Contains;
using testing::DaemonProcess;
using ::testing::Not;
using testing::TempFolder;

TEST(Surroundings, AreAsOldAsTheLastLook) {
  Surroundings surroundings({"cuda:GPU-00000000-0000-0000-0000-000000000000"});
  const Nanos now = seconds(100);
  EXPECT_TRUE(surroundings.is_older_than(seconds(1000), now)) << "there was no look yet";
  surroundings.look({}, now);
  EXPECT_FALSE(surroundings.is_older_than(seconds(1), now + seconds(1)));
  EXPECT_TRUE(surroundings.is_older_than(seconds(1), now + seconds(1) + Nanos{1}));
  EXPECT_TRUE(surroundings.neighbours().found.empty()) << "jobs report them for a CUDA device";
}

TEST(Surroundings, NameTheOtherCoordinatorsOfTheDevice) {
  const TempFolder folder;
  DaemonProcess other(folder);
  const std::string warning = warning_text({other.pid(), other.socket(), std::nullopt}, "cpu") +
                              ": each gives away all of it";
  Surroundings surroundings({"cpu"});
  surroundings.look({}, seconds(1));
  EXPECT_THAT(surroundings.warnings(), Contains(warning));
  other.signal(SIGTERM);
  EXPECT_EQ(other.wait(), 0);
  EXPECT_THAT(surroundings.warnings(), Contains(warning)) << "as of the last look";
  surroundings.look({}, seconds(2));
  EXPECT_THAT(surroundings.warnings(), Not(Contains(warning)));
}

}  // namespace
}  // namespace gpushare::daemon
