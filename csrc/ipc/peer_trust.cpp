#include "csrc/ipc/peer_trust.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "csrc/base/path.h"
#include "csrc/ipc/socket.h"

namespace gpushare::ipc {
namespace {

std::string user_name(std::uint32_t uid) {
  std::array<char, 4096> buffer;
  struct passwd entry = {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return fmt::format("{} ({})", entry.pw_name, uid);
  }
  return fmt::format("{}", uid);
}

// Only its owner (and root) can put something there.
bool is_closed_folder_of(const std::string& path, std::uint32_t owner) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == owner &&
         (info.st_mode & S_IWOTH) == 0;
}

// Only root could give that user a folder there.
bool was_given_by_root(const std::string& socket_path, std::uint32_t uid) {
  std::string folder = folder_of(socket_path);
  if (!folder.starts_with('/') || folder.find("/..") != std::string::npos) return false;
  if (!is_closed_folder_of(folder, uid)) return false;
  while (folder != "/") {
    folder = folder_of(folder);
    if (!is_closed_folder_of(folder, 0)) return false;
  }
  return true;
}

Status check_user(std::uint32_t uid, const std::string& path) {
  if (uid == ::geteuid() || uid == 0 || was_given_by_root(path, uid)) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("who listens at {} is user {}, neither you ({}) nor root nor a service that "
                      "root has set up: nothing was sent there. Have {} removed, or set "
                      "GPUSHARE_SOCKET to a path in a folder of your own",
                      path, user_name(uid), ::geteuid(), folder_of(path))};
}

}  // namespace

Status check_listener(int socket, const std::string& path) {
  const Result<Credentials> peer = peer_credentials(socket);
  if (!peer.has_value()) return peer.error();
  return check_user(peer->uid, path);
}

Status check_owner(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return errno_status("look at " + path);
  return check_user(info.st_uid, path);
}

}  // namespace gpushare::ipc
