// Starts the coordinator's program and waits until it has put itself into the background. Its first
// process ends then; exit status 0 means that a coordinator listens. The program must keep nothing
// of the user's program alive: no descriptor, no signal mask, no terminal session.
//
// What may go wrong: the program cannot be run, ends with an error, or is not ready in time and is
// killed. The error has what it wrote to its standard error, which is a pipe to here.
#include "csrc/client/link/coordinator_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"
#include "csrc/ipc/socket.h"

// POSIX does not put it into a header.
extern char** environ;

namespace gpushare::client {
namespace {

constexpr std::size_t kMaxErrorText = 4096;

// posix_spawn's two settings objects, freed together. Its functions return an errno value.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int fill(int error_pipe) {
    keep(::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0));
    keep(::posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0));
    keep(::posix_spawn_file_actions_adddup2(&actions_, error_pipe, 2));
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // Descriptors of the user's program that do not close on exec: a pipe kept open in a daemon
    // would keep its reader waiting for ever.
    keep(::posix_spawn_file_actions_addclosefrom_np(&actions_, 3));
#endif
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    keep(::posix_spawnattr_setsigmask(&attributes_, &none));
    keep(::posix_spawnattr_setsigdefault(&attributes_, &all));
    keep(::posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID)));
    return error_;
  }

  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void keep(int error) {
    if (error_ == 0) error_ = error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int error_ = 0;  // the first
};

Status unavailable(const std::string& program, const std::string& how, const std::string& said) {
  std::string text = fmt::format("cannot start the coordinator {}: {}", program, how);
  if (!said.empty()) text += ": " + said;
  return {StatusCode::kUnavailable, text};
}

// Reads what is in the pipe now. The rest of a long text is dropped, so that the writer never
// blocks.
void drain(int pipe, std::string& text) {
  std::array<char, 1024> buffer;
  ssize_t count = 0;
  while ((count = ::read(pipe, buffer.data(), buffer.size())) > 0) {
    if (text.size() < kMaxErrorText) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

struct Ending {
  bool is_ended = false;
  int wait_status = 0;
  std::string said;
};

// Waits for our own child and for no other. The child may have been reaped by somebody else, if
// SIGCHLD is ignored or the user's program called wait(). That counts as success: the next connect
// will show whether it listens.
Ending wait_for_end(pid_t pid, int error_pipe, Nanos timeout) {
  Ending ending;
  // An old kernel has no pidfd. Then poll() ignores the -1, and its time limit ends each wait.
  const Result<UniqueFd> pidfd = ipc::open_pidfd(pid);
  const Nanos deadline = monotonic_now() + timeout;
  while (true) {
    const pid_t reaped = ::waitpid(pid, &ending.wait_status, WNOHANG);
    ending.is_ended = reaped == pid || (reaped < 0 && errno == ECHILD);
    drain(error_pipe, ending.said);
    if (ending.is_ended || monotonic_now() >= deadline) break;
    std::array<pollfd, 2> entries{
        {{.fd = error_pipe, .events = POLLIN, .revents = 0},
         {.fd = pidfd ? pidfd->get() : -1, .events = POLLIN, .revents = 0}}};
    constexpr int kSliceMs = 10;
    ::poll(entries.data(), entries.size(), kSliceMs);
  }
  ending.said = trimmed(ending.said);
  return ending;
}

std::string describe(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("it ended with {}", WEXITSTATUS(wait_status));
  if (WIFSIGNALED(wait_status)) {
    return fmt::format("it was killed by signal {}", WTERMSIG(wait_status));
  }
  return fmt::format("it ended with wait status {}", wait_status);
}

}  // namespace

Status start_coordinator(const std::string& program,
                         const std::string& socket_path,
                         const std::vector<std::string>& more_args,
                         Nanos timeout) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return unavailable(program, errno_status("pipe").message(), "");
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::vector<std::string> args = {program, "--daemonize", "--socket", socket_path};
  args.insert(args.end(), more_args.begin(), more_args.end());
  std::vector<char*> argv;
  for (std::string& arg : args)
    argv.push_back(arg.data());
  argv.push_back(nullptr);

  SpawnSettings settings;
  pid_t pid = -1;
  int error = settings.fill(writer.get());
  if (error == 0) {
    error = ::posix_spawn(&pid, program.c_str(), settings.actions(), settings.attributes(),
                          argv.data(), environ);
  }
  if (error != 0) {
    errno = error;
    return unavailable(program, errno_status("posix_spawn").message(), "");
  }
  writer.reset();
  const Ending ending = wait_for_end(pid, reader.get(), timeout);
  if (!ending.is_ended) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return unavailable(program, "it was not ready after " + to_string(timeout), ending.said);
  }
  if (ending.wait_status == 0) return {};
  return unavailable(program, describe(ending.wait_status), ending.said);
}

}  // namespace gpushare::client
