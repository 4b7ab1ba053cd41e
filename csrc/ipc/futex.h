// Wait and wake on a 32-bit word that several processes share.
//
// std::atomic::wait is not this: libstdc++ uses the process-private futex, which never wakes
// another process.
#pragma once

#include <atomic>
#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::ipc {

// The 32 low bits of a 64-bit word (little-endian machines only; asserted in futex.cpp).
std::uint32_t* low_half(std::atomic<std::uint64_t>& word);

enum class WaitResult : std::uint8_t { kWoken, kChanged, kTimedOut, kInterrupted };
// Sleeps while *word == expected, at most `timeout`. Wakes may be spurious.
WaitResult futex_wait(std::uint32_t* word, std::uint32_t expected, Nanos timeout);
// Wakes at most `count` waiters of any process.
void futex_wake(std::uint32_t* word, int count);

}  // namespace gpushare::ipc
