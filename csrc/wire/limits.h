// The version of the protocol, and the most that one message may say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::wire {

// Raised when a message changes its meaning. A coordinator accepts this one and the one before.
// Within one version messages only gain fields that may be absent, and types that no older job is
// sent: so an older job works with a newer coordinator.
inline constexpr std::uint32_t kProtocolVersion = 1;
// A message longer than this is refused unread.
inline constexpr std::size_t kMaxMessageBytes = 131072;
inline constexpr std::size_t kMaxNameBytes = 128;
// Longest free text (command, reason, text, spill_dir): a message of such texts fits
// kMaxMessageBytes even if every byte of them is escaped. The encoder cuts longer ones.
inline constexpr std::size_t kMaxTextBytes = 8192;
inline constexpr std::uint32_t kMaxRanks = 4096;
// How many slots of a lane's pool one message may list. Their numbers are below kMaxLaneSlot. A
// slot is 2 MiB.
inline constexpr std::size_t kMaxLaneSlots = 8192;
inline constexpr std::uint32_t kMaxLaneSlot = 65536;
inline constexpr Bytes kLaneSlotBytes = mib(2);
// The host tier is used in pieces of this.
inline constexpr Bytes kHostPieceBytes = mib(2);
// No size or time of a message or page is larger, so that a few of them add up without overflow.
inline constexpr std::int64_t kMaxAmount = std::int64_t{1} << 60;

}  // namespace gpushare::wire
