// Two forks make a daemon. The first process waits for the middle one, which ends at once, and then
// for a report in a pipe. The daemon writes "+" when it serves, or "-" with the error. If it dies
// without a report, the pipe ends empty, and that counts as a failure too.
//
// The log, /dev/null and the pipe are opened before the first fork, where an error can still be
// returned.
#include "csrc/daemon/process/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::daemon {
namespace {

constexpr char kReadyMark = '+';
constexpr char kFailedMark = '-';

// All of it, also if a signal comes in between.
void write_text(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads any more: nobody is left to be told
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 512> part{};
  while (true) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

// In the first process: waits for the daemon's report, and ends with it as the exit status.
[[noreturn]] void wait_for_report(UniqueFd pipe, pid_t middle) {
  while (::waitpid(middle, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string report = read_to_end(pipe.get());
  if (!report.empty() && report.front() == kReadyMark) ::_exit(0);
  write_text(STDERR_FILENO, "gpushared: " +
                                (report.empty() ? std::string("ended before it served; see its log")
                                                : report.substr(1)) +
                                "\n");
  ::_exit(1);
}

}  // namespace

void Launch::report_ready() {
  if (!pipe_.is_valid()) return;
  write_text(pipe_.get(), std::string_view(&kReadyMark, 1));
  pipe_.reset();
}

void Launch::report_failure(const Status& status) {
  if (!pipe_.is_valid()) return;
  write_text(pipe_.get(), kFailedMark + status.message());
  pipe_.reset();
}

// Three processes come out of it. The first waits and never returns from here, the middle one ends
// at once, and the daemon goes on with the Launch. The working folder becomes /, so that no file
// system is kept from being unmounted.
Result<Launch> go_to_background(const std::string& log_file) {
  const UniqueFd log(
      ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.is_valid()) return fail(errno_status("open the log " + log_file));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.is_valid()) return fail(errno_status("open /dev/null"));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(errno_status("pipe"));
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);

  const pid_t middle = ::fork();
  if (middle < 0) return fail(errno_status("fork"));
  if (middle > 0) {
    writer.reset();
    wait_for_report(std::move(reader), middle);
  }
  reader.reset();
  Launch launch(std::move(writer));
  // The session is the daemon's own. The second fork gives up its lead, so that no terminal can be
  // acquired.
  const bool has_session = ::setsid() >= 0;
  const pid_t daemon = has_session ? ::fork() : -1;
  if (daemon != 0) {
    if (daemon < 0) launch.report_failure(errno_status(has_session ? "second fork" : "setsid"));
    ::_exit(0);
  }
  if (::chdir("/") != 0 || ::dup2(nothing.get(), STDIN_FILENO) < 0 ||
      ::dup2(log.get(), STDOUT_FILENO) < 0 || ::dup2(log.get(), STDERR_FILENO) < 0) {
    launch.report_failure(errno_status("go to the background"));
    ::_exit(1);
  }
  return launch;
}

}  // namespace gpushare::daemon
