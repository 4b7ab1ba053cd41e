// To which arena an allocation goes: kPrivate while the lease is open, kOutside while it is closed.
#pragma once

#include <cstdint>

namespace gpushare::alloc {

enum class Route : std::uint8_t { kPrivate, kOutside };

}  // namespace gpushare::alloc
