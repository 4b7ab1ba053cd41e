// Random messages within the protocol's bounds, for property tests: every field, by hand, so that a
// field which the codec's list forgot does not come back equal. Call only inside a RapidCheck
// property: each draw is one `*gen`.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "csrc/wire/messages.h"

namespace gpushare::wire::testing {

// Any printable UTF-8, with what JSON must escape, up to `max_bytes`.
inline std::string draw_string(std::size_t max_bytes = kMaxNameBytes) {
  constexpr std::size_t kLongestPiece = 4;
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "a", "Z9", " ", "\"", "\\", "/", "{", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"));
  std::string text;
  // Sometimes as long as is allowed.
  if (*rc::gen::inRange(0, 8) == 0) text.assign(max_bytes, 'x');
  for (const std::string& piece : pieces) {
    if (text.size() + kLongestPiece <= max_bytes) text += piece;
  }
  return text;
}

template <typename T>
T draw_up_to(T max) {
  switch (*rc::gen::inRange(0, 6)) {
    case 0: return 0;
    case 1: return max;
    default: return *rc::gen::resize(100, rc::gen::inRange<T>(0, max));
  }
}

inline std::uint64_t draw_number() { return draw_up_to(std::numeric_limits<std::uint64_t>::max()); }
inline Bytes draw_bytes() { return Bytes{draw_up_to(kMaxAmount)}; }
inline Nanos draw_nanos() { return Nanos{draw_up_to(kMaxAmount)}; }
inline Term draw_term() { return Term{draw_up_to(static_cast<std::uint64_t>(kMaxAmount / 2))}; }

inline Address draw_address() {
  Address of;
  of.job = JobId{draw_number()};
  of.device = draw_string();
  of.gang = draw_string();
  of.ranks = *rc::gen::inRange<std::uint32_t>(1, kMaxRanks + 1);
  of.rank = *rc::gen::inRange<std::uint32_t>(0, of.ranks);
  return of;
}

inline double draw_weight() {
  return *rc::gen::element(1.0, 0.1, 1.0 / 3.0, 1e-300, std::numeric_limits<double>::denorm_min(),
                           std::numeric_limits<double>::max(), 12345678.9);
}

inline std::vector<std::uint32_t> draw_slots() {
  if (*rc::gen::inRange(0, 8) == 0) {
    return std::vector<std::uint32_t>(kMaxLaneSlots, kMaxLaneSlot - 1);
  }
  std::vector<std::uint32_t> slots(*rc::gen::inRange<std::size_t>(0, 5));
  for (std::uint32_t& slot : slots)
    slot = draw_up_to(kMaxLaneSlot - 1);
  return slots;
}

inline Hello draw_hello() {
  return {.protocol = draw_up_to(std::numeric_limits<std::uint32_t>::max()),
          .version = draw_string(),
          .command = draw_string(kMaxTextBytes),
          .pid = draw_up_to(std::numeric_limits<std::int32_t>::max()),
          .uid = draw_up_to(std::numeric_limits<std::uint32_t>::max()),
          .of = draw_address(),
          .resident = draw_bytes(),
          .spilled = draw_bytes(),
          .spilled_file = draw_bytes(),
          .held_term = draw_term(),
          .lane_epoch = draw_number(),
          .lane_slots = draw_slots(),
          .device_total = draw_bytes(),
          .device_free = draw_bytes(),
          .device_piece = draw_bytes(),
          .program = draw_string()};
}

template <typename T>
std::optional<T> draw_perhaps(T value) {
  return *rc::gen::arbitrary<bool>() ? std::optional(value) : std::nullopt;
}

inline Priority draw_priority() { return static_cast<Priority>(*rc::gen::inRange(0, 4)); }

inline double draw_share() { return *rc::gen::inRange(0, 1001) / 1000.0; }

inline Changes draw_changes() {
  return {.priority = draw_perhaps(draw_priority()),
          .weight = draw_perhaps(draw_weight()),
          .memory_limit = draw_perhaps(draw_bytes()),
          .deadline = draw_perhaps(draw_nanos()),
          .share_limit = draw_perhaps(draw_share()),
          .is_elastic = draw_perhaps(*rc::gen::arbitrary<bool>()),
          .is_paused = draw_perhaps(*rc::gen::arbitrary<bool>())};
}

inline JobSettings draw_settings() {
  return {.priority = draw_priority(),
          .weight = draw_weight(),
          .memory_limit = draw_bytes(),
          .deadline = draw_nanos(),
          .share_limit = draw_share(),
          .is_elastic = *rc::gen::arbitrary<bool>(),
          .iterations_total = draw_number()};
}

inline Register draw_register() {
  return {.of = draw_address(),
          .name = draw_string(),
          .group = draw_string(),
          .settings = draw_settings(),
          .paused_by = draw_perhaps(draw_up_to(std::numeric_limits<std::uint32_t>::max())),
          .iterations_done = draw_number(),
          .fingerprint = draw_number(),
          .stop_at = draw_perhaps(draw_number())};
}

inline Released draw_released() {
  return {.of = draw_address(),
          .n = draw_number(),
          .bytes = draw_bytes(),
          .dropped = draw_bytes(),
          .spilled = draw_bytes(),
          .spilled_file = draw_bytes(),
          .spilled_late = draw_bytes(),
          .unplaced = draw_bytes(),
          .more = *rc::gen::arbitrary<bool>(),
          .with_lease = *rc::gen::arbitrary<bool>(),
          .need_n = *rc::gen::arbitrary<std::uint64_t>(),
          .held = *rc::gen::arbitrary<bool>(),
          .reason = draw_string(kMaxTextBytes)};
}

// One of each alternative that a socket may carry: `kind` from 0 on.
inline constexpr int kJobKinds = 13;
inline JobMessage draw_job_message(int kind) {
  switch (kind) {
    case 0: return draw_hello();
    case 1: return draw_register();
    case 2: return Unregister{draw_address()};
    case 3:
      return Need{draw_address(),
                  draw_number(),
                  draw_bytes(),
                  draw_bytes(),
                  *rc::gen::arbitrary<bool>(),
                  draw_perhaps(draw_bytes())};
    case 4: return draw_released();
    case 5: return Consumed{draw_address(), draw_number()};
    case 6:
      return LaneChanged{draw_address(), draw_number(), draw_bytes(),
                         draw_number(),  draw_slots(),  draw_slots()};
    case 7: return Explain{draw_address()};
    case 8: return StatusRequest{draw_perhaps(JobId{draw_number()})};
    case 9: return Stop{*rc::gen::arbitrary<bool>()};
    case 10: return Set{JobId{draw_number()}, draw_changes()};
    case 11: return SetPolicy{draw_string()};
    default: return Place{draw_string(kMaxTextBytes), draw_string(kMaxTextBytes)};
  }
}

inline Welcome draw_welcome() {
  return {.protocol = draw_up_to(std::numeric_limits<std::uint32_t>::max()),
          .epoch = draw_number(),
          .of = draw_address(),
          .capacity = draw_bytes(),
          .room = draw_bytes(),
          .spill_dir = draw_string(kMaxTextBytes),
          .host_ram_budget = draw_bytes(),
          .host_file_budget = draw_bytes(),
          .memory_wait = draw_nanos()};
}

inline constexpr int kCoordinatorKinds = 12;
inline CoordinatorMessage draw_coordinator_message(int kind) {
  switch (kind) {
    case 0: return draw_welcome();
    case 1: return Registered{draw_address(), draw_string(kMaxTextBytes)};
    case 2: return Grant{draw_address(), draw_number(), draw_number(), draw_bytes(), draw_number()};
    case 3: return LaneTable{draw_address(), draw_number(), draw_slots()};
    case 4: return Revoke{draw_address(), draw_number(), draw_bytes(), draw_bytes(), draw_bytes()};
    case 5: return Denied{draw_address(), draw_number(), draw_string(kMaxTextBytes)};
    case 6: return Close{draw_address(), draw_term()};
    case 7:
      return Changed{draw_address(), draw_changes(),
                     draw_up_to(std::numeric_limits<std::uint32_t>::max())};
    case 8: return Explained{draw_address(), draw_string(kMaxTextBytes)};
    case 9: return Refused{draw_string(kMaxTextBytes)};
    case 10: return StatusReport{draw_string(4 * kMaxTextBytes)};
    default: return Placed{draw_string()};
  }
}

}  // namespace gpushare::wire::testing
