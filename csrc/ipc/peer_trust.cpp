// Decides by user number and by folder whether a listener may be this job's coordinator. Three
// users are accepted, in this order: our own, root, and the user of a service. A service is a user
// to whom root has given the folder of the socket. That is so if every folder above belongs to root
// and nobody else can write there, and the last folder belongs to that user alone.
//
// The folders are checked from the root downwards. Once a folder is known to be root's and closed,
// nobody else can exchange what lies in it, so the next check cannot be deceived.
//
// What may go wrong: another user listens in /tmp under the name that a job expects. Then the job
// gets kFailedPrecondition with a text that says what to do, and nothing is sent.
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

// "name (number)" for messages, or the number alone where the system knows no name.
std::string user_name(std::uint32_t uid) {
  std::array<char, 4096> buffer;
  struct passwd entry = {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return fmt::format("{} ({})", entry.pw_name, uid);
  }
  return fmt::format("{}", uid);
}

// Whether only the owner and root can put something there, or put something else in its place.
// lstat() does not follow links, so a link is never accepted as a folder.
bool is_closed_folder_of(const std::string& path, std::uint32_t owner) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == owner &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether only root could have given this folder to the user. The path is walked from "/"
// downwards, so that each part is looked at only after its parent was found closed to others.
bool is_given_by_root(const std::string& folder, std::uint32_t uid) {
  if (folder == "/") return false;
  for (std::size_t end = 0; end != std::string::npos; end = folder.find('/', end + 1)) {
    if (!is_closed_folder_of(end == 0 ? "/" : folder.substr(0, end), 0)) return false;
  }
  return is_closed_folder_of(folder, uid);
}

// A relative path or one with ".." is refused: the walk above checks only folders that the path
// names.
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
