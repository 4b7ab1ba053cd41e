// Finding a coordinator: tries the sockets in order, and starts one if none answers.
//
// A socket that this process may not open ends the search. A coordinator of its own beside one that
// owns the device would give the device away twice.
#pragma once

#include <functional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/client/config.h"

namespace gpushare::client {

struct SearchLimits {
  Nanos patience;  // for so long sockets are only tried, before a coordinator is started
  Nanos timeout;   // of the whole search
  // Waits for so long, or less. false: the search is to be given up.
  std::function<bool(Nanos)> pause;
};

// Returns a connected socket. errors: kUnavailable with everything that was tried; kCancelled.
Result<UniqueFd> find_coordinator(const ClientConfig& config, const SearchLimits& limits);

// "cannot open PATH: permission denied; it belongs to group gpu, you are not in it", or `cause`
// where the file's mode is not the reason.
std::string describe_refusal(const std::string& path, const std::string& cause);

}  // namespace gpushare::client
