// Frames over stream sockets, to other hosts by TCP or within one by a Unix socket. A frame is a
// length of four bytes, the highest first, and so many bytes.
//
// The sockets never block. Every descriptor closes on exec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::ipc {

// Where a stream listens: "tcp:HOST:PORT" with a name or an address, where that of IPv6 stands in
// brackets, or "unix:/PATH".
struct StreamAddress {
  std::string path = {};  // of a Unix socket; empty: TCP
  std::string host = {};
  std::uint16_t port = 0;
  bool operator==(const StreamAddress&) const = default;
};

// errors: kInvalidArgument, with what is allowed.
Result<StreamAddress> parse_stream_address(std::string_view text);
std::string to_string(const StreamAddress& address);
// The same with the host as a number, so that connect_stream() need not look it up. A name may have
// several numbers, one of which nobody listens at: `turn` counts through them. May take seconds.
// errors: kUnavailable: no such name.
Result<StreamAddress> look_up(const StreamAddress& address, std::size_t turn = 0);

// A Unix socket has mode 0600. errors: kIo, kInvalidArgument: the host is a name.
Result<UniqueFd> listen_stream(const StreamAddress& address);
// Begins to connect. The socket is readable when the other side has sent something or has failed.
// errors: kUnavailable: nobody listens there; kIo; kInvalidArgument: the host is a name.
Result<UniqueFd> connect_stream(const StreamAddress& address);
// The port at which the socket listens; 0 for a Unix socket.
Result<std::uint16_t> port_of(int listener);
// Names the other end of the socket for the log.
std::string peer_text(int socket);

// One connection. Bytes that the socket does not take now are kept, up to a bound.
class FrameStream {
 public:
  // `max_waiting`: the most bytes that may wait to be sent.
  FrameStream(UniqueFd socket, std::size_t max_waiting);

  [[nodiscard]] int socket() const { return socket_.get(); }
  // Appends the frames that have come, and reads a bounded number of bytes in one call. A frame may
  // have at most `max_frame` bytes. errors: kUnavailable: the other side is gone; the frames before
  // that are in `frames`. kProtocol: a longer frame. kIo.
  Status receive(std::size_t max_frame, std::vector<std::string>& frames);
  // errors: kUnavailable; kDeadlineExceeded: too much waits already; kIo.
  Status send(std::string_view frame);
  // Sends what waits. Call it now and then while is_waiting().
  Status flush();
  [[nodiscard]] bool is_waiting() const { return !waiting_.empty(); }

 private:
  UniqueFd socket_;
  std::size_t max_waiting_;
  std::string received_;  // the beginning of a frame
  std::string waiting_;   // to be sent
};

}  // namespace gpushare::ipc
