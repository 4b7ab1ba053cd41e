// Messages to JSON text and back. The decoder faces peers that are not trusted: it bounds sizes,
// checks types and ranges, and never throws. One object a message: {"v":1,"type":"need",...}; bytes
// and nanoseconds are integers, whose names end in _bytes and _ns.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/wire/messages.h"

namespace gpushare::wire {

// Strings that are not UTF-8 are repaired ('?' for each bad byte), since JSON cannot hold them;
// text over kMaxTextBytes is cut. Names over kMaxNameBytes are left for the decoder to refuse, and
// a StatusReport too long for kMaxMessageBytes for the caller to shorten. pre: not marked (page) or
// (daemon).
std::string encode(const JobMessage& message);
std::string encode(const CoordinatorMessage& message);

// errors: kProtocol for what is no message of this protocol, with what was wrong.
// Messages marked (page) or (daemon) are refused: a socket may not carry them.
Result<JobMessage> decode_from_job(std::string_view text);
Result<CoordinatorMessage> decode_from_coordinator(std::string_view text);
// The settings alone: one object with the fields that a Register has for them. errors: kProtocol.
Result<JobSettings> decode_settings(std::string_view text);

}  // namespace gpushare::wire
