// JSON text -> message. The checks go from the outside to the inside, as in
// csrc/wire/codec_decode.cpp: the length, JSON, one object, the type, each field. The version is
// checked in the first message of each side, where a refusal can say both versions.
#include "csrc/arbiter/codec.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "csrc/arbiter/codec_fields.h"
#include "csrc/base/units.h"
#include "csrc/wire/codec_decoder.h"
#include "csrc/wire/codec_encoder.h"
#include "csrc/wire/codec_text.h"

namespace gpushare::arbiter {
namespace {

using nlohmann::json;
using wire::codec::Decoder;
using wire::codec::Encoder;

// The times of all ranks of a gang are summed.
constexpr Nanos kMostServed = seconds(2'000'000);

void bound(Contender& contender) {
  contender.served = std::min(contender.served, kMostServed);
  for (Nanos* time : {&contender.deadline, &contender.iteration})
    *time = std::min(*time, host::kMostRankTime);
}

template <typename Variant>
// kType becomes the field "type"; list_fields() gives the rest, and each message has its own.
std::string encode_any(const Variant& message) {
  return std::visit(
      [](const auto& one) {
        Encoder encoder(one.kType, kProtocolVersion);
        list_fields(encoder, one);
        return encoder.dump();
      },
      message);
}

template <typename Variant, typename Message>
// Returns whether `type` names this kind of message. If so, `result` is the message, or the first
// fault that was found in it.
bool decode_if(const json& object, std::string_view type, std::optional<Result<Variant>>& result) {
  if (type != Message::kType) return false;
  Message message;
  Decoder decoder(object, Message::kType);
  list_fields(decoder, message);
  if (decoder.status().ok()) {
    result = Variant(std::move(message));
  } else {
    result = fail(decoder.status());
  }
  return true;
}

// Tries the types one after the other. The second parameter only says which types there are.
template <typename... Messages>
Result<std::variant<Messages...>> decode(std::string_view text,
                                         const std::variant<Messages...>* /*alternatives*/) {
  using Variant = std::variant<Messages...>;
  if (text.size() > kMaxFrameBytes) {
    return fail(StatusCode::kProtocol,
                fmt::format("message of {} B, at most {} allowed", text.size(), kMaxFrameBytes));
  }
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded() || !object.is_object())
    return fail(StatusCode::kProtocol, "message is not a JSON object");
  const auto found = object.find("type");
  if (found == object.end() || !found->is_string())
    return fail(StatusCode::kProtocol, "field type is missing or not a string");
  const auto& type = found->template get_ref<const std::string&>();
  std::optional<Result<Variant>> result;
  if (!(decode_if<Variant, Messages>(object, type, result) || ...)) {
    return fail(StatusCode::kProtocol,
                fmt::format("unknown message \"{}\"", wire::codec::to_printable(type)));
  }
  return *std::move(result);
}

}  // namespace

std::string encode(const HostMessage& message) { return encode_any(message); }
std::string encode(const ArbiterMessage& message) { return encode_any(message); }

// A host may be wrong about its own numbers. They are cut here, before rows add them up.
Result<HostMessage> decode_from_host(std::string_view text) {
  auto message = decode(text, static_cast<const HostMessage*>(nullptr));
  if (!message) return message;
  if (auto* rank = std::get_if<Rank>(&*message)) {
    rank->report = host::bounded(std::move(rank->report));
    bound(rank->contender);
  }
  if (auto* singles = std::get_if<Singles>(&*message)) bound(singles->contender);
  return message;
}

Result<ArbiterMessage> decode_from_arbiter(std::string_view text) {
  return decode(text, static_cast<const ArbiterMessage*>(nullptr));
}

}  // namespace gpushare::arbiter
