// A token that others may read is as good as none, so such a file is refused. The checks are made
// on the open descriptor: nobody can exchange the file between check and use.
#include "csrc/daemon/arbiter/secrets.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/base/sha256.h"
#include "csrc/base/unique_fd.h"
#include "csrc/daemon/files/text_file.h"

namespace gpushare::daemon {
namespace {

constexpr std::size_t kLeastToken = 16;
constexpr std::size_t kMostToken = 1024;

}  // namespace

Result<std::string> read_token(const std::string& path) {
  // O_NONBLOCK: opening a pipe does not wait for its writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_valid()) return fail(errno_status("read the token in " + path));
  if (Status status = check_own_file(fd.get(), path); !status.ok()) return fail(status);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(errno_status("look at " + path));
  if ((info.st_mode & 0077U) != 0) {
    return fail(StatusCode::kFailedPrecondition,
                fmt::format("others may read or write {} (mode {:04o}), so it is no secret: "
                            "chmod 600 {}",
                            path, info.st_mode & 07777U, path));
  }
  // One byte more than is allowed, so that a longer file is not taken for its beginning.
  std::string text(kMostToken + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail(errno_status("read the token in " + path));
  text.resize(static_cast<std::size_t>(got));
  constexpr const char* kWhite = " \t\r\n";
  text.erase(text.find_last_not_of(kWhite) + 1);
  text.erase(0, text.find_first_not_of(kWhite));
  if (text.size() >= kLeastToken && text.size() <= kMostToken) return text;
  return fail(StatusCode::kFailedPrecondition,
              fmt::format("the token in {} has {} B, must have {} to {}: head -c 32 /dev/urandom | "
                          "base64 > {}",
                          path, text.size(), kLeastToken, kMostToken, path));
}

Result<std::string> make_nonce() {
  std::array<std::uint8_t, 16> bytes{};
  // So few bytes come all at once, or none do (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail(errno_status("draw a random number"));
  return to_hex(bytes);
}

}  // namespace gpushare::daemon
