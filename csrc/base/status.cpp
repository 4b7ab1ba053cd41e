// What went wrong, as text for a log line or an error.
//
// A Status has a code, which callers decide by, and a message, which people read. The name of the
// code appears only in to_string(), for the log; exceptions of Python get the message alone.
#include "csrc/base/status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace gpushare {

const char* name_of(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "kOk";
    case StatusCode::kInvalidArgument: return "kInvalidArgument";
    case StatusCode::kOutOfMemory: return "kOutOfMemory";
    case StatusCode::kHostTierFull: return "kHostTierFull";
    case StatusCode::kUnavailable: return "kUnavailable";
    case StatusCode::kDeadlineExceeded: return "kDeadlineExceeded";
    case StatusCode::kCancelled: return "kCancelled";
    case StatusCode::kFailedPrecondition: return "kFailedPrecondition";
    case StatusCode::kProtocol: return "kProtocol";
    case StatusCode::kIo: return "kIo";
  }
  return "unknown";
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return fmt::format("{}: {}", name_of(code_), message_);
}

// The result names the error twice: "(No space left)" is for people, and ENOSPC is what they search
// for.
Status errno_status(const std::string& what) {
  // Read first: what follows may change it.
  const int error = errno;
  // Both are null for a number that is no error of this system.
  const char* name = strerrorname_np(error);
  const char* text = strerrordesc_np(error);
  return {StatusCode::kIo, fmt::format("{}: {} ({})", what, name == nullptr ? "?" : name,
                                       text == nullptr ? fmt::format("error {}", error) : text)};
}

}  // namespace gpushare
