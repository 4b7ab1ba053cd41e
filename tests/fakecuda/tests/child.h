// Other processes in a test: this same program, started anew in a role, with a socket between.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "csrc/base/unique_fd.h"

namespace fakecuda_tests {

// One end of the socket. A message is a number, with a descriptor or without.
class Channel {
 public:
  explicit Channel(gpushare::UniqueFd socket) : socket_(std::move(socket)) {}

  void send(uint64_t number, int fd = -1);
  // Ends the process if the other side is gone: a test that waits for nobody must not hang.
  uint64_t receive(gpushare::UniqueFd* fd = nullptr);
  void close() { socket_.reset(); }

 private:
  gpushare::UniqueFd socket_;
};

using Role = void (*)(Channel&);

// Declares what a child does: FAKECUDA_ROLE(holds_memory) { channel.send(...); }
#define FAKECUDA_ROLE(name)                                                   \
  static void name(fakecuda_tests::Channel& channel);                         \
  static const bool name##_is_known = fakecuda_tests::add_role(#name, &name); \
  static void name([[maybe_unused]] fakecuda_tests::Channel& channel)
bool add_role(const std::string& name, Role role);

// For main(): runs the role if this process was started for one. Returns whether it was.
bool run_role(int argc, char** argv);

class Child {
 public:
  // `environment`: variables that it has besides or instead of the parent's.
  explicit Child(const std::string& role,
                 const std::map<std::string, std::string>& environment = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Channel& channel() { return channel_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill();
  // Waits for its end. Returns the exit status, or minus the signal that killed it.
  int wait();

 private:
  Channel channel_;
  pid_t pid_ = -1;
};

}  // namespace fakecuda_tests
