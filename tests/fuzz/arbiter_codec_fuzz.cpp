// The decoder of the arbiter's messages against any bytes: it must refuse or accept, and what it
// accepts must be within bounds and come back equal through the encoder. A host's messages are also
// fed to an arbiter, whose invariants must hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "csrc/arbiter/arbiter.h"
#include "csrc/arbiter/codec.h"
#include "csrc/base/check.h"

namespace gpushare::arbiter {
namespace {

template <typename Message>
void check(std::string_view text, Result<Message> (*decode)(std::string_view)) {
  const Result<Message> message = decode(text);
  if (!message.has_value()) {
    GS_CHECK(message.error().code() == StatusCode::kProtocol, "{}", message.error().to_string());
    GS_CHECK(message.error().message().size() < 400, "{}", message.error().message());
    return;
  }
  const std::string again = encode(*message);
  // Escapes may make it longer than what came.
  if (again.size() > kMaxFrameBytes) return;
  const Result<Message> back = decode(again);
  GS_CHECK(back.has_value(), "{}", back.has_value() ? "" : back.error().to_string());
  GS_CHECK(*back == *message, "{}", again);
}

// One message a line, from a host that has joined.
void feed(std::string_view text) {
  Arbiter arbiter({}, 1);
  Nanos now = seconds(1);
  const PeerId peer{1};
  const auto joined = arbiter.join(peer, {.host = "a", .devices = "cpu:0,cpu:1"}, now);
  GS_CHECK(joined.has_value());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto message = decode_from_host(line);
    if (!message.has_value()) continue;
    if (const auto* join = std::get_if<Join>(&*message)) {
      static_cast<void>(arbiter.join(PeerId{2}, *join, now));
    } else if (!arbiter.hear(peer, *message, now).ok()) {
      return;
    }
    now += millis(100);
    for (const auto& [to, look] : arbiter.step(now).messages)
      if (to == peer && std::holds_alternative<Look>(look))
        static_cast<void>(arbiter.hear(peer, Looked{std::get<Look>(look).round}, now));
    arbiter.check_invariants();
  }
}

}  // namespace
}  // namespace gpushare::arbiter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gpushare::arbiter::check(text, &gpushare::arbiter::decode_from_host);
  gpushare::arbiter::check(text, &gpushare::arbiter::decode_from_arbiter);
  gpushare::arbiter::feed(text);
  return 0;
}
