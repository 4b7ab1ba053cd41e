#include "tests/fakecuda/tests/child.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace fakecuda_tests {
namespace {

using gpushare::UniqueFd;

constexpr int kChildSocket = 3;
constexpr const char* kRoleOption = "--role";

std::map<std::string, Role>& roles() {
  static std::map<std::string, Role> known;
  return known;
}

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "fakecuda_tests, process %d: %s\n", getpid(), why);
  std::_Exit(99);
}

// Room for one descriptor beside a message.
union Control {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

}  // namespace

void Channel::send(uint64_t number, int fd) {
  iovec part{&number, sizeof number};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (fd >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != sizeof number) give_up("cannot send");
}

uint64_t Channel::receive(UniqueFd* fd) {
  uint64_t number = 0;
  iovec part{&number, sizeof number};
  msghdr message{};
  Control control{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  if (recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC) != sizeof number) {
    give_up("the other side is gone");
  }
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    UniqueFd owned(received);
    if (fd != nullptr) *fd = std::move(owned);
  }
  return number;
}

bool add_role(const std::string& name, Role role) { return roles().emplace(name, role).second; }

bool run_role(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], kRoleOption) != 0) return false;
  Channel channel{UniqueFd(kChildSocket)};
  roles().at(argv[2])(channel);
  return true;
}

Child::Child(const std::string& role, const std::map<std::string, std::string>& environment)
    : channel_(UniqueFd()) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) give_up("socketpair");
  channel_ = Channel(UniqueFd(sockets[0]));
  pid_ = fork();
  if (pid_ < 0) give_up("fork");
  if (pid_ != 0) {
    ::close(sockets[1]);
    return;
  }
  for (const auto& [name, value] : environment)
    setenv(name.c_str(), value.c_str(), 1);
  // dup2 of a descriptor onto itself would leave it to be closed by exec.
  const int socket = sockets[1] == kChildSocket ? dup(sockets[1]) : sockets[1];
  dup2(socket, kChildSocket);
  execl("/proc/self/exe", "gs_fakecuda_tests", kRoleOption, role.c_str(), nullptr);
  give_up("cannot start the child");
}

Child::~Child() {
  if (pid_ > 0) {
    kill();
    wait();
  }
}

void Child::kill() { ::kill(pid_, SIGKILL); }

int Child::wait() {
  int status = 0;
  if (waitpid(std::exchange(pid_, -1), &status, 0) < 0) give_up("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace fakecuda_tests
