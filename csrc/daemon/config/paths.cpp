// Where the socket and its neighbours lie, and whether their folder may be used.
//
// The folder decides who can put files under our names. It must be a real folder of ours or root's,
// and not everybody may write to it. It is made if it is not there, and only then are its group and
// mode set: a folder that exists keeps those that somebody gave it. All checks come after the
// making, on what is there then.
#include "csrc/daemon/config/paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/path.h"
#include "csrc/base/status.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

constexpr auto kSameUser = static_cast<uid_t>(-1);

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A link is no folder here, even one that leads to a folder of ours: somebody else may have made
// it.
bool is_own_folder(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// Lets those enter the folder whom the socket lets in.
mode_t folder_mode(unsigned socket_mode) {
  mode_t mode = 0700;
  if ((socket_mode & 0060U) != 0) mode |= 0050;
  if ((socket_mode & 0006U) != 0) mode |= 0005;
  return mode;
}

}  // namespace

std::string socket_name(std::string_view device) {
  if (device == wire::kAllCuda) return fmt::format("{}.sock", device);
  if (!wire::is_cuda(device)) return "sock";
  return std::string(device.substr(wire::kCudaPrefix.size())) + ".sock";
}

// A socket named after one or all CUDA devices has a log of the same name; all others share one
// name, beside their socket.
std::string log_path_of(const std::string& socket_path) {
  const std::string name = socket_path.substr(socket_path.rfind('/') + 1);
  const std::string_view stem = std::string_view(name).substr(0, name.rfind('.'));
  const bool is_of_cuda =
      name.ends_with(".sock") &&
      (stem == wire::kAllCuda ||
       wire::is_device_name(std::string(wire::kCudaPrefix) + std::string(stem)));
  return fmt::format("{}/{}.log", folder_of(socket_path), is_of_cuda ? stem : "coordinator");
}

// The runtime folder of a login is private and goes with it. Without one, a folder in /tmp has the
// user's number in its name, and prepare_folder() checks whose it is.
std::string default_socket_path(std::string_view device) {
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  if (!runtime.empty() && runtime.front() == '/' && is_own_folder(runtime)) {
    return runtime + "/gpushare/" + socket_name(device);
  }
  return fmt::format("/tmp/gpushare-{}/{}", ::geteuid(), socket_name(device));
}

// A relative path would depend on the working folder, so it counts as none, as the XDG
// specification says.
std::string default_accounts_folder() {
  const std::string state = environment("XDG_STATE_HOME");
  const std::string home = environment("HOME");
  if (state.starts_with('/')) return state + "/gpushare/accounts";
  return home.starts_with('/') ? home + "/.local/state/gpushare/accounts" : "";
}

std::vector<std::string> default_config_paths() {
  std::vector<std::string> paths{"/etc/gpushare/config.toml"};
  const std::string config = environment("XDG_CONFIG_HOME");
  const std::string home = environment("HOME");
  if (!config.empty()) {
    paths.push_back(config + "/gpushare/config.toml");
  } else if (!home.empty()) {
    paths.push_back(home + "/.config/gpushare/config.toml");
  }
  return paths;
}

// A folder that is new gets group and mode; one that was there is only checked. So a user's own
// choice of mode stays.
Status prepare_folder(const std::string& socket_path,
                      unsigned socket_mode,
                      std::optional<std::uint32_t> socket_group) {
  const std::string folder = folder_of(socket_path);
  const bool is_new = ::mkdir(folder.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return errno_status("make the folder " + folder);
  if (is_new && socket_group && ::lchown(folder.c_str(), kSameUser, *socket_group) != 0) {
    return errno_status(fmt::format("give the folder {} to group {}", folder, *socket_group));
  }
  if (is_new && ::chmod(folder.c_str(), folder_mode(socket_mode)) != 0) {
    return errno_status("open the folder " + folder);
  }
  struct stat info{};
  // lstat: a link in a shared folder may be anybody's.
  if (::lstat(folder.c_str(), &info) != 0) return errno_status("look at the folder " + folder);
  if (!S_ISDIR(info.st_mode)) {
    return {StatusCode::kFailedPrecondition, folder + " is not a folder"};
  }
  // Root's folders, such as /run/gpushare of a service, are as good as ours.
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} belongs to user {}, not to {}: refusing to use it", folder, info.st_uid,
                        ::geteuid())};
  }
  // A group may write to it: many machines give each user a group and umask 002. A sticky folder
  // (/tmp) is refused too: anybody may have put files under our names there.
  if ((info.st_mode & S_IWOTH) != 0) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} has mode {:o}, so anybody can put files there: take a folder of your "
                        "own for the socket, or chmod o-w it",
                        folder, info.st_mode & 07777U)};
  }
  return {};
}

}  // namespace gpushare::daemon
