#include "csrc/ipc/peer_trust.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
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

// Only its owner (and root) can put something there, or something else in its place.
bool is_closed_folder_of(const std::string& path, std::uint32_t owner) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == owner &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether only root could give the user this folder. Looked at from above, so that nothing is that
// another user could have put there.
bool is_given_by_root(const std::string& folder, std::uint32_t uid) {
  if (folder == "/") return false;
  for (std::size_t end = 0; end != std::string::npos; end = folder.find('/', end + 1)) {
    if (!is_closed_folder_of(end == 0 ? "/" : folder.substr(0, end), 0)) return false;
  }
  return is_closed_folder_of(folder, uid);
}

bool was_given_by_root(const std::string& socket_path, std::uint32_t uid) {
  const std::string folder = folder_of(socket_path);
  if (!folder.starts_with('/') || folder.find("/..") != std::string::npos) return false;
  return is_given_by_root(folder, uid);
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

bool is_of_service(const std::string& path, std::uint32_t uid) {
  struct stat info = {};
  return was_given_by_root(path, uid) && ::lstat(path.c_str(), &info) == 0 &&
         S_ISSOCK(info.st_mode) && info.st_uid == uid;
}

}  // namespace gpushare::ipc
