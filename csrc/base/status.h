// Status and Result: failures that are not bugs (no memory, a peer gone, a full disk).
//
// A function that can fail because the world fails returns `Status`, or `Result<T>` where it also
// has a value. The message says what was tried, with sizes and units, and the code's name. Bugs are
// GS_CHECK's business (check.h); nothing below `binding/` throws.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace gpushare {

enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,     // the caller's value is outside its documented range
  kOutOfMemory,         // no room on the device, now
  kHostTierFull,        // no room where spilled bytes go
  kUnavailable,         // the coordinator, a peer or a driver cannot be reached
  kDeadlineExceeded,    // waited as long as allowed
  kCancelled,           // the waiter was asked to stop (a signal, close())
  kFailedPrecondition,  // not in a state in which this can be done
  kProtocol,            // bytes from a peer that no message allows
  kIo,                  // a system call failed; the message has errno's name
};

// "kOutOfMemory" and so on.
const char* name_of(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  // "kIo: open /run/x: ENOENT", or "ok".
  [[nodiscard]] std::string to_string() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// kIo with "<what>: <errno's name> (<its text>)". Reads errno, so call it at once.
Status errno_status(const std::string& what);

template <typename T>
using Result = tl::expected<T, Status>;

inline tl::unexpected<Status> fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}
inline tl::unexpected<Status> fail(StatusCode code, std::string message) {
  return tl::unexpected<Status>(Status(code, std::move(message)));
}

}  // namespace gpushare

// Hands a failed Status to the caller: GS_RETURN_IF_ERROR(vmm.back(range));
#define GS_RETURN_IF_ERROR(expression)           \
  do {                                           \
    ::gpushare::Status gs_status = (expression); \
    if (!gs_status.ok()) return gs_status;       \
  } while (false)
