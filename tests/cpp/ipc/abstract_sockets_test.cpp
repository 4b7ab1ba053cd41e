#include "csrc/ipc/abstract_sockets.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"

namespace gpushare::ipc {
namespace {

UniqueFd bind_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], name.data(), name.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  return fd;
}

TEST(AbstractSockets, HaveTheirNameAndTheirOwner) {
  const std::string name = fmt::format("gpushare-test {}\n1: and more", ::getpid());
  const auto find = [&] {
    const auto sockets = list_abstract_sockets().value();
    return std::count_if(sockets.begin(), sockets.end(), [&](const AbstractSocket& each) {
      return each.name == name && each.uid == ::geteuid();
    });
  };
  EXPECT_EQ(find(), 0);
  {
    const UniqueFd holder = bind_name(name);
    EXPECT_EQ(find(), 1);
  }
  EXPECT_EQ(find(), 0);
}

TEST(AbstractSockets, AreListedWhereThereAreMany) {
  std::vector<UniqueFd> holders;
  for (int i = 0; i < 500; ++i)
    holders.push_back(bind_name(fmt::format("gpushare-many {} {}", ::getpid(), i)));
  const std::string prefix = fmt::format("gpushare-many {} ", ::getpid());
  const auto sockets = list_abstract_sockets().value();
  EXPECT_EQ(
      std::count_if(sockets.begin(), sockets.end(),
                    [&](const AbstractSocket& each) { return each.name.starts_with(prefix); }),
      500);
}

}  // namespace
}  // namespace gpushare::ipc
