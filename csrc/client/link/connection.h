// One connection to a coordinator: messages out, messages in, nothing about what they mean.
//
// Which problem it solves: a coordinator that is stopped reads nothing, and a job must never hang
// in a send. So what the socket does not take at once is kept and sent by flush(), when the socket
// is writable again.
//
// threads: none of its own; the owner's lock keeps calls apart. No call blocks.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/own_file.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

class Connection {
 public:
  struct Received {
    wire::CoordinatorMessage message;
    std::vector<UniqueFd> fds;
  };

  Connection() = default;
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  [[nodiscard]] bool is_open() const { return socket_.is_valid(); }
  // -1 when closed.
  [[nodiscard]] int fd() const { return socket_.get(); }
  // The program has closed its descriptor.
  [[nodiscard]] bool is_lost() const { return socket_.is_lost(); }
  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }
  void close();
  // Ends the conversation, but keeps the descriptor for whoever polls it: receive then says closed.
  void shut_down();

  // Sent now or kept for flush(). errors: kUnavailable (the peer is gone, or has read nothing for
  // kMaxUnsent messages), kIo.
  Status send(const wire::JobMessage& message);
  Status flush();
  // Empty if no message is there now. errors: kUnavailable (the peer has closed), kProtocol, kIo.
  Result<std::optional<Received>> receive();

 private:
  static constexpr std::size_t kMaxUnsent = 1024;

  OwnFile socket_;
  std::deque<std::string> unsent_;  // in order; the oldest is sent first
};

}  // namespace gpushare::client
