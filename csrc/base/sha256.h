// SHA-256 and HMAC-SHA256, by which two processes prove to each other that they know one secret
// without sending it.
//
// Plain code without the processor's own instructions for it, for messages that are short and not
// many. source: FIPS 180-4, RFC 2104.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpushare {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view text);
Sha256 hmac_sha256(std::string_view key, std::string_view text);
// Two digits a byte, in lower case.
std::string to_hex(std::span<const std::uint8_t> bytes);
// Takes as long for texts that differ early as for those that differ late.
bool is_equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace gpushare
