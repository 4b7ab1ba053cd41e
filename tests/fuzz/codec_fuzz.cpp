// The decoder against any bytes: it must refuse or accept, and what it accepts must be within the
// protocol's bounds and come back equal through the encoder.
#include "csrc/wire/codec.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "csrc/base/check.h"

namespace gpushare::wire {
namespace {

void check_bounds(const Address& of) {
  GS_CHECK(of.rank < of.ranks && of.ranks <= kMaxRanks, "{} of {}", of.rank, of.ranks);
  GS_CHECK(of.device.size() <= kMaxNameBytes && of.gang.size() <= kMaxNameBytes, "{}", of.gang);
}

void check_amount(std::int64_t amount) {
  GS_CHECK(amount >= 0 && amount <= kMaxAmount, "{}", amount);
}

struct CheckBounds {
  template <typename Message>
  void operator()(const Message& message) const {
    if constexpr (requires { message.of; }) check_bounds(message.of);
    if constexpr (requires { message.bytes; }) check_amount(message.bytes.value());
    if constexpr (requires { message.room.value_or(Bytes{}); }) {
      check_amount(message.room.value_or(Bytes{}).value());
    } else if constexpr (requires { message.room; }) {
      check_amount(message.room.value());
    }
    if constexpr (requires { message.resident; }) check_amount(message.resident.value());
    if constexpr (requires { message.memory_wait; }) check_amount(message.memory_wait.value());
    if constexpr (requires { message.settings.weight; }) {
      GS_CHECK(message.settings.weight > 0, "{}", message.settings.weight);
    }
    if constexpr (requires { message.reason; }) {
      GS_CHECK(message.reason.size() <= kMaxTextBytes, "{} B", message.reason.size());
    }
  }
};

template <typename Message>
void check(std::string_view text, Result<Message> (*decode)(std::string_view)) {
  const Result<Message> message = decode(text);
  if (!message.has_value()) {
    // A peer's bytes must not fill the log.
    GS_CHECK(message.error().code() == StatusCode::kProtocol, "{}", message.error().to_string());
    GS_CHECK(message.error().message().size() < 400, "{}", message.error().message());
    return;
  }
  std::visit(CheckBounds(), *message);
  const std::string again = encode(*message);
  // Escapes may make it longer than what came; only the report is bounded by nothing else.
  if (again.size() > kMaxMessageBytes) return;
  const Result<Message> back = decode(again);
  GS_CHECK(back.has_value(), "{}", back.has_value() ? "" : back.error().to_string());
  GS_CHECK(*back == *message, "{}", again);
}

}  // namespace
}  // namespace gpushare::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gpushare::wire::check(text, &gpushare::wire::decode_from_job);
  gpushare::wire::check(text, &gpushare::wire::decode_from_coordinator);
  return 0;
}
