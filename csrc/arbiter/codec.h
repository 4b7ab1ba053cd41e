// Messages between a host and the arbiter to JSON text and back, with the visitors of csrc/wire.
// The decoder faces a network: it bounds sizes, checks types and ranges, and never throws.
#pragma once

#include <string>
#include <string_view>

#include "csrc/arbiter/messages.h"
#include "csrc/base/status.h"

namespace gpushare::arbiter {

std::string encode(const HostMessage& message);
std::string encode(const ArbiterMessage& message);

// Numbers of a rank are cut to what rows can add up. errors: kProtocol, with what was wrong.
Result<HostMessage> decode_from_host(std::string_view text);
Result<ArbiterMessage> decode_from_arbiter(std::string_view text);

}  // namespace gpushare::arbiter
