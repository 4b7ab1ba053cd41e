// Finding a coordinator: tries the sockets in order, and starts one if nobody answers.
//
// A socket that may not be opened ends the search: starting a coordinator of one's own beside one
// that owns the device would overcommit the device.
#pragma once

#include <functional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/client/config.h"

namespace gpushare::client {

struct SearchLimits {
  Nanos patience;  // only connect for so long, before one is started
  Nanos timeout;   // of the whole search
  // Waits so long, or less; false: give up the search.
  std::function<bool(Nanos)> pause;
};

// A connected socket. errors: kUnavailable with everything that was tried; kCancelled.
Result<UniqueFd> find_coordinator(const ClientConfig& config, const SearchLimits& limits);

// "cannot open PATH: permission denied; it belongs to group gpu, you are not in it", or `cause`
// where the file's mode is not the reason.
std::string describe_refusal(const std::string& path, const std::string& cause);

}  // namespace gpushare::client
