#include "csrc/client/cpu/process_activity.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/base/clock.h"

namespace gpushare::client {
namespace {

TEST(ProcessActivity, ChildrenCountWhileTheyLiveAndAfterwards) {
  constexpr Nanos kWork = millis(60);
  const Nanos before = cpu_of_process_tree();
  const pid_t child = ::fork();
  if (child == 0) {
    while (process_cpu_now() < kWork * 2) {
    }
    ::pause();
  }
  ASSERT_GT(child, 0);
  while (cpu_of_process_tree() - before < kWork) {
    ::usleep(5000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GE(cpu_of_process_tree() - before, kWork);
}

TEST(ProcessActivity, AThreadThatSpinsIsAtWorkAndOneThatSleepsIsNot) {
  // Threads of other tests may still be about to end.
  while (has_thread_at_work()) {
    ::usleep(5000);
  }
  std::atomic<bool> is_over = false;
  std::thread spins([&] {
    while (!is_over) {
    }
  });
  EXPECT_TRUE(has_thread_at_work());
  is_over = true;
  spins.join();
}

TEST(ProcessActivity, OnlyWaitsForAPersonOrAnEventAreWaitsForInput) {
  const auto line = [](long call, const char* first) {
    return fmt::format("{} {} 0x7f0 0x80 0x0 0x0 0x0 0x7ffc 0x7f12", call, first);
  };
  EXPECT_TRUE(is_wait_for_input(line(SYS_epoll_pwait, "0x5")));
  EXPECT_TRUE(is_wait_for_input(line(SYS_read, "0x0")));
  EXPECT_TRUE(is_wait_for_input(line(SYS_pselect6, "0x1")));
  EXPECT_FALSE(is_wait_for_input(line(SYS_read, "0x3")));
  EXPECT_FALSE(is_wait_for_input(line(SYS_pselect6, "0x9")));
  EXPECT_FALSE(is_wait_for_input(line(SYS_futex, "0x0")));
  EXPECT_FALSE(is_wait_for_input(line(SYS_wait4, "0xffffffff")));
  for (const char* text : {"running", "", "-1 0x7ffc 0x7f12"})
    EXPECT_FALSE(is_wait_for_input(text));
}

TEST(ProcessActivity, SeesAThreadThatWaitsForEvents) {
  if (!std::ifstream("/proc/self/syscall").good()) GTEST_SKIP() << "no /proc/self/syscall here";
  const int loop = ::epoll_create1(0);
  const int bell = ::eventfd(0, 0);
  epoll_event event{.events = EPOLLIN, .data = {.fd = bell}};
  ASSERT_EQ(::epoll_ctl(loop, EPOLL_CTL_ADD, bell, &event), 0);
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = ::gettid();
    epoll_event seen{};
    EXPECT_EQ(::epoll_wait(loop, &seen, 1, -1), 1);
  });
  while (id == 0 || !awaits_input(id)) {
  }
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(bell, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  thread.join();
  ::close(bell);
  ::close(loop);
}

TEST(ProcessActivity, SeesWhatAThreadWaitsFor) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = ::gettid();
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  });
  while (id == 0) {
  }
  // A pipe is a peer, or a child process.
  EXPECT_FALSE(awaits_input(id));
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  thread.join();
  EXPECT_FALSE(awaits_input(id)) << "it is gone";
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace gpushare::client
