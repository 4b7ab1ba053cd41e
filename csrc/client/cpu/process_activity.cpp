// The activity of this process and its children, from /proc. Processor time is summed over the
// process, its living descendants and its children that have ended. Descendants are found by the
// lists of children that each thread has; the number of threads that are looked at is bounded, as
// this runs a few times a second.
//
// Whether a thread waits for input is told from the system call that it is in. Anything that cannot
// be read counts as "no".
#include "csrc/client/cpu/process_activity.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/process/process_stat.h"

namespace gpushare::client {
namespace {

Nanos of(const timeval& time) { return seconds(time.tv_sec) + micros(time.tv_usec); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The most threads that are looked at for children, over all processes together.
constexpr int kMostThreads = 512;

void add_children(pid_t process, std::vector<pid_t>& all, int& num_threads) {
  const std::string folder = fmt::format("/proc/{}/task", process);
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir(folder.c_str()), &::closedir);
  if (!threads) return;
  const dirent* thread = nullptr;
  while ((thread = ::readdir(threads.get())) != nullptr && num_threads < kMostThreads) {
    ++num_threads;
    std::istringstream pids(first_line(fmt::format("{}/{}/children", folder, thread->d_name)));
    for (pid_t pid = 0; pids >> pid;)
      all.push_back(pid);
  }
}

}  // namespace

Nanos cpu_of_process_tree() {
  std::vector<pid_t> descendants;
  int num_threads = 0;
  add_children(::getpid(), descendants, num_threads);
  for (std::size_t i = 0; i < descendants.size(); ++i)
    add_children(descendants[i], descendants, num_threads);
  rusage ended{};
  ::getrusage(RUSAGE_CHILDREN, &ended);
  Nanos sum = process_cpu_now() + of(ended.ru_utime) + of(ended.ru_stime);
  for (const pid_t process : descendants)
    sum += read_process_stat(process).value_or(ProcessStat{}).cpu;
  return sum;
}

// A thread's state is the letter behind its name, which is in parentheses and may have some itself.
bool has_thread_at_work() {
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir("/proc/self/task"), &::closedir);
  if (!threads) return false;
  const std::string own = std::to_string(::gettid());
  const dirent* thread = nullptr;
  for (int num = 0; num < kMostThreads && (thread = ::readdir(threads.get())) != nullptr; ++num) {
    if (thread->d_name == own || thread->d_name[0] == '.') continue;  // ".." is the whole process
    const std::string line = first_line(fmt::format("/proc/self/task/{}/stat", thread->d_name));
    const std::size_t name_end = line.rfind(") ");
    const char state = name_end == std::string::npos ? 'S' : line.at(name_end + 2);
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

// The kernel shows the system call of a thread that sleeps in one.
bool awaits_input(pid_t thread) {
  return is_wait_for_input(first_line(fmt::format("/proc/self/task/{}/syscall", thread)));
}

bool is_wait_for_input(const std::string& line) {
  std::istringstream words(line);  // "running", or the call's number and its arguments
  std::int64_t call = -1;
  std::string first;
  if (!(words >> call >> first)) return false;
  switch (call) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
      return true;
    case SYS_read: return first == "0x0";  // the descriptor
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return first == "0x1";  // standard input alone, as readline does
    default: return false;
  }
}

}  // namespace gpushare::client
