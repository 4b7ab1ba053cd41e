#include "csrc/daemon/process/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"
#include "csrc/ipc/socket.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::TempFolder;

// The service manager: a socket, and what has arrived there.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  // The next message, "" if none comes in time.
  std::string next(Nanos patience = seconds(20)) {
    const auto is_there = ipc::wait_readable(fd_.get(), patience);
    if (!is_there.has_value() || !*is_there) return "";
    std::array<char, 256> text{};
    const ssize_t size = ::recv(fd_.get(), text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  bool has_nothing() { return next(Nanos{0}).empty(); }

 private:
  UniqueFd fd_;
};

class ServiceNoticeTest : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
      ::unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

  TempFolder folder_;
};

TEST_F(ServiceNoticeTest, SaysNothingWithoutAManager) {
  const ServiceNotice notice = ServiceNotice::from_environment();
  notice.say_ready();
  notice.say_alive();
  notice.say_stopping();
}

TEST_F(ServiceNoticeTest, SaysEachThingAtAPathAndAtAnAbstractName) {
  const std::string path = folder_.path() + "/notify";
  for (const std::string& name : {path, "@gpushare-test" + path}) {
    Manager manager(name);
    set("NOTIFY_SOCKET", name);
    set("WATCHDOG_USEC", "30000000");
    const ServiceNotice notice = ServiceNotice::from_environment();
    notice.say_ready();
    EXPECT_EQ(manager.next(), "READY=1") << name;
    notice.say_alive();
    EXPECT_EQ(manager.next(), "WATCHDOG=1") << name;
    notice.say_stopping();
    EXPECT_EQ(manager.next(), "STOPPING=1") << name;
  }
}

TEST_F(ServiceNoticeTest, SignsOfLifeAreForAManagerThatAsksThisProcess) {
  const std::string path = folder_.path() + "/notify";
  Manager manager(path);
  set("NOTIFY_SOCKET", path);
  ServiceNotice::from_environment().say_alive();
  EXPECT_TRUE(manager.has_nothing()) << "no WATCHDOG_USEC";
  set("WATCHDOG_USEC", "30000000");
  set("WATCHDOG_PID", "1");
  ServiceNotice::from_environment().say_alive();
  EXPECT_TRUE(manager.has_nothing()) << "asked of another process";
  set("WATCHDOG_PID", std::to_string(::getpid()));
  ServiceNotice::from_environment().say_alive();
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
}

TEST_F(ServiceNoticeTest, AManagerThatIsGoneOrANameThatIsNoneEndsNothing) {
  for (const std::string& name :
       {folder_.path() + "/nobody", std::string("relative"), "/" + std::string(200, 'a')}) {
    set("NOTIFY_SOCKET", name);
    ServiceNotice::from_environment().say_ready();
  }
}

TEST_F(ServiceNoticeTest, SignsOfLifeNeverWaitForAManagerThatReadsNothing) {
  const std::string path = folder_.path() + "/notify";
  Manager manager(path);
  set("NOTIFY_SOCKET", path);
  set("WATCHDOG_USEC", "30000000");
  const ServiceNotice notice = ServiceNotice::from_environment();
  constexpr int kMoreThanAQueueHolds = 5000;  // net.unix.max_dgram_qlen is 10 to 512
  for (int i = 0; i < kMoreThanAQueueHolds; ++i)
    notice.say_alive();
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
}

TEST_F(ServiceNoticeTest, TheProgramIsReadyOnceItsSocketAnswersAndSaysThatItEnds) {
  const std::string path = folder_.path() + "/notify";
  Manager manager(path);
  set("NOTIFY_SOCKET", path);
  set("WATCHDOG_USEC", "30000000");
  DaemonProcess daemon(folder_);
  EXPECT_EQ(manager.next(), "READY=1");
  EXPECT_TRUE(ipc::connect_to(daemon.socket()).has_value());
  EXPECT_EQ(manager.next(), "WATCHDOG=1");
  EXPECT_EQ(manager.next(), "WATCHDOG=1") << "again and again";
  daemon.signal(SIGTERM);
  std::string last = manager.next();
  while (last == "WATCHDOG=1")
    last = manager.next();
  EXPECT_EQ(last, "STOPPING=1");
  EXPECT_EQ(daemon.wait(), 0);
}

TEST_F(ServiceNoticeTest, OneInTheBackgroundDoesNotSpeakForTheServiceOfItsJob) {
  const std::string path = folder_.path() + "/notify";
  Manager manager(path);
  set("NOTIFY_SOCKET", path);
  set("WATCHDOG_USEC", "30000000");
  const std::string socket = folder_.path() + "/sock";
  const auto started =
      testing::run_gpushared({"--socket", socket, "--capacity", "64MiB", "--daemonize"});
  ASSERT_EQ(started.exit_code, 0) << started.error_text;
  testing::StatusClient(socket).ask(wire::Stop{.force = true});
  ASSERT_TRUE(testing::eventually([&] { return !ipc::connect_to(socket).has_value(); }));
  EXPECT_TRUE(manager.has_nothing());
}

}  // namespace
}  // namespace gpushare::daemon
