// Real daemons and their folder, for tests. Everything that was started is ended and waited for.
//
// The test process must have one thread: the doubles fork.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "csrc/base/unique_fd.h"
#include "csrc/wire/messages.h"

namespace gpushare::testing {

// A folder of its own under /tmp, removed with all that is in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Looks every few milliseconds until `is_true`, at most 20 s.
bool eventually(const std::function<bool()>& is_true);

// How a child ended, and what it wrote to stderr.
struct Ended {
  int exit_code = -1;  // -1: by a signal
  std::string error_text;
};
// Runs the built gpushared until it ends by itself (with --daemonize: its first process).
Ended run_gpushared(const std::vector<std::string>& arguments);
// Starts it without waiting.
pid_t spawn_gpushared(const std::vector<std::string>& arguments, int stderr_fd);

// One gpushared in the foreground, on `socket()`, with a device of 64 MiB and short times.
class DaemonProcess {
 public:
  explicit DaemonProcess(const TempFolder& folder, std::vector<std::string> more = {});
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits for its end by itself; its exit code, -1 if by a signal.
  int wait();

 private:
  std::string socket_;
  pid_t pid_ = -1;
};

// A connection as the command line has it. Answers are waited for 20 s.
class StatusClient {
 public:
  explicit StatusClient(const std::string& socket);
  // The answer to `message`; Refused with the reason "closed" when the connection ended instead.
  wire::CoordinatorMessage ask(const wire::JobMessage& message);
  wire::CoordinatorMessage ask_bytes(const std::string& bytes);
  wire::CoordinatorMessage receive();
  // Without waiting for an answer.
  void tell(const wire::JobMessage& message);
  // Whether the next thing to be read is the end.
  bool is_at_end();

 private:
  UniqueFd socket_;
};

nlohmann::json status_of(const std::string& socket);
// The row of `job`; null if there is none.
nlohmann::json job_row(const std::string& socket, std::uint64_t job);
// Waits until the job's row has this state, or the test fails.
void wait_for_state(const std::string& socket, std::uint64_t job, const std::string& state);

}  // namespace gpushare::testing
