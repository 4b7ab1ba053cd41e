// Frames of one connection. Both directions are bounded: a frame that is too long is refused when
// its length is known, and what waits to be sent has a limit. A side that does not read thus loses
// its connection, and costs no more memory than that.
//
// Frames that came before the end of a connection are still read: the other side may have sent them
// and then ended.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/ipc/stream.h"

namespace gpushare::ipc {
namespace {

constexpr std::size_t kLengthBytes = 4;
// At most so many bytes are read in one turn of the loop, so that one peer does not keep the others
// waiting.
constexpr std::size_t kMostAtOnce = 65536;

// The length of a frame stands before it, in four bytes, the highest first.
std::size_t length_at(std::string_view bytes) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

// Errors that mean that the other side has gone are kUnavailable: callers take them for an ordinary
// end, and try again.
Status stream_status(const char* what) {
  const int error = errno;
  Status status = errno_status(what);
  const bool is_gone = error == EPIPE || error == ECONNRESET || error == ENOTCONN ||
                       error == ETIMEDOUT || error == ECONNREFUSED || error == EHOSTUNREACH ||
                       error == ENETUNREACH;
  return is_gone ? Status(StatusCode::kUnavailable, status.message()) : status;
}

}  // namespace

FrameStream::FrameStream(UniqueFd socket, std::size_t max_waiting)
    : socket_(std::move(socket)), max_waiting_(max_waiting) {
  // A small frame goes out at once. A Unix socket has no such option, and needs none.
  const int on = 1;
  static_cast<void>(::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

Status FrameStream::receive(std::size_t max_frame, std::vector<std::string>& frames) {
  Status end;
  std::array<char, 16384> buffer;
  for (std::size_t got = 0; got < kMostAtOnce && end.ok();) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) end = stream_status("receive");
    if (count == 0) end = {StatusCode::kUnavailable, "the connection has ended"};
    if (count <= 0) break;
    received_.append(buffer.data(), static_cast<std::size_t>(count));
    got += static_cast<std::size_t>(count);
  }
  std::size_t at = 0;
  while (received_.size() - at >= kLengthBytes) {
    const std::size_t length = length_at(std::string_view(received_).substr(at));
    if (length == 0 || length > max_frame) {
      return {StatusCode::kProtocol,
              fmt::format("a frame of {} B, 1 to {} are allowed", length, max_frame)};
    }
    if (received_.size() - at - kLengthBytes < length) break;
    frames.push_back(received_.substr(at + kLengthBytes, length));
    at += kLengthBytes + length;
  }
  received_.erase(0, at);
  return end;
}

Status FrameStream::send(std::string_view frame) {
  GS_CHECK(!frame.empty(), "an empty frame");
  if (waiting_.size() + frame.size() > max_waiting_) {
    return {StatusCode::kDeadlineExceeded,
            fmt::format("{} B wait to be sent already", waiting_.size())};
  }
  for (int shift = 24; shift >= 0; shift -= 8)
    waiting_.push_back(static_cast<char>(frame.size() >> shift & 0xff));
  waiting_.append(frame);
  return flush();
}

Status FrameStream::flush() {
  std::size_t sent = 0;
  Status status;
  while (sent < waiting_.size()) {
    const ssize_t count = ::send(socket_.get(), waiting_.data() + sent, waiting_.size() - sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) {
      status = stream_status("send");
      break;
    }
    sent += static_cast<std::size_t>(count);
  }
  waiting_.erase(0, sent);
  return status;
}

}  // namespace gpushare::ipc
