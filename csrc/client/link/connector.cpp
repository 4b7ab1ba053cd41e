// Looks for a coordinator at each socket path in order, and starts one if nobody listens anywhere.
//
// Three outcomes of a try end the search: a connection, a listener that is not trusted, and a
// socket that this user may not open. To start another coordinator beside one that owns the device
// would give the device away twice. A listener with a full queue is waited for, up to a minute. If
// nobody listens, the search goes on for `patience`; then a coordinator is started at the last
// path. All of it ends at the search's timeout.
#include "csrc/client/link/connector.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/link/coordinator_program.h"
#include "csrc/ipc/peer_trust.h"
#include "csrc/ipc/socket.h"

namespace gpushare::client {
namespace {

// The pause between two tries. A coordinator that starts or ends takes some milliseconds.
constexpr Nanos kRetry = millis(10);
// How long a job waits in the kernel for a coordinator whose queue is full. The kernel wakes it
// when there is a place. A job that instead tried again by itself would lose its place to a flood
// of others.
constexpr Nanos kWaitToBeLetIn = millis(100);
// The limit for a listener with a full queue. There is a coordinator, so waiting is better than
// going on without.
constexpr Nanos kBusyTimeout = seconds(60);

// One try at all paths. Whoever listens is checked before anything is sent (peer_trust.h). errors:
// kUnavailable: nobody listens at any of them; kDeadlineExceeded: a queue stayed full;
// kFailedPrecondition: one may not be opened, or is not trusted.
Result<UniqueFd> connect_to_any(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    Result<UniqueFd> socket = ipc::connect_to(path, kWaitToBeLetIn);
    if (socket.has_value()) {
      const Status trusted = ipc::check_listener(socket->get(), path);
      if (!trusted.ok()) return fail(trusted);
      return socket;
    }
    if (socket.error().code() == StatusCode::kDeadlineExceeded) {
      const Status trusted = ipc::check_owner(path);
      if (!trusted.ok()) return fail(trusted);
      return socket;
    }
    if (socket.error().code() != StatusCode::kUnavailable) {
      return fail(StatusCode::kFailedPrecondition,
                  describe_refusal(path, socket.error().message()));
    }
  }
  return fail(StatusCode::kUnavailable,
              fmt::format("no coordinator at {}", fmt::join(paths, " or ")));
}

std::string group_name(gid_t group) {
  std::array<char, 4096> buffer;
  struct group entry = {};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return entry.gr_name;
  }
  return fmt::format("{}", group);
}

bool is_in_group(gid_t group) {
  if (::getegid() == group) return true;
  const int count = ::getgroups(0, nullptr);
  if (count <= 0) return false;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  const int filled = ::getgroups(count, groups.data());
  groups.resize(static_cast<std::size_t>(std::max(filled, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

class Search {
 public:
  Search(const ClientConfig& config, const SearchLimits& limits)
      : config_(config), limits_(limits), start_(monotonic_now()) {}

  Result<UniqueFd> run() {
    while (true) {
      Result<UniqueFd> socket = try_once();
      // Only "nobody is there" may have changed by the next time.
      const bool is_final =
          socket.has_value() || socket.error().code() != StatusCode::kDeadlineExceeded;
      if (is_final) return socket;
      const std::string& nobody = socket.error().message();
      const Nanos timeout = is_busy_ ? std::max(limits_.timeout, kBusyTimeout) : limits_.timeout;
      if (elapsed() >= timeout) {
        return fail(StatusCode::kUnavailable,
                    fmt::format("{} after {}", nobody, to_string(elapsed())));
      }
      // A coordinator that is just ending refused this job, and is not there the next time.
      if (!limits_.pause(kRetry)) return fail(StatusCode::kCancelled, "search was stopped");
    }
  }

 private:
  // One round: connect, and if nobody is there for `patience`, start a coordinator and connect to
  // it. errors: kDeadlineExceeded: nobody is there now, or nobody can be let in; all others are
  // final.
  Result<UniqueFd> try_once() {
    Result<UniqueFd> socket = connect_to_any(config_.socket_paths);
    if (socket.has_value()) return socket;
    const std::string why = socket.error().message();
    is_busy_ = socket.error().code() == StatusCode::kDeadlineExceeded;
    if (is_busy_) return socket;
    if (socket.error().code() != StatusCode::kUnavailable) {
      return fail(StatusCode::kUnavailable, why);
    }
    if (elapsed() >= limits_.patience) {
      const Status status = start_one(why);
      if (!status.ok()) return fail(status);
      socket = connect_to_any({config_.socket_paths.back()});
      if (socket.has_value()) return socket;
    }
    return fail(StatusCode::kDeadlineExceeded, why);
  }

  [[nodiscard]] Nanos elapsed() const { return monotonic_now() - start_; }

  Status start_one(const std::string& nobody) {
    if (config_.daemon_path.empty()) {
      return {StatusCode::kUnavailable, nobody + ", and none may be started from here"};
    }
    log::info("{}; starting {}", nobody, config_.daemon_path);
    const Nanos left = std::max(limits_.timeout - elapsed(), millis(1));
    return start_coordinator(config_.daemon_path, config_.socket_paths.back(), config_.daemon_args,
                             left);
  }

  const ClientConfig& config_;
  const SearchLimits& limits_;
  const Nanos start_;
  bool is_busy_ = false;  // somebody listens, and has too many to let in
};

}  // namespace

// Why a socket may not be opened, with the group that may: the usual cure is to join that group.
std::string describe_refusal(const std::string& path, const std::string& cause) {
  const int access = ::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS);
  if (access == 0 || errno != EACCES) return cause;
  std::string text = fmt::format("cannot open {}: permission denied", path);
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return text + "; its folder is closed to you";
  const std::string group = group_name(info.st_gid);
  if (is_in_group(info.st_gid)) return text + fmt::format("; it is closed to its group {}", group);
  return text + fmt::format("; it belongs to group {}, you are not in it", group);
}

Result<UniqueFd> find_coordinator(const ClientConfig& config, const SearchLimits& limits) {
  return Search(config, limits).run();
}

}  // namespace gpushare::client
