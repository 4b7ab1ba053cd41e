// JSON text -> message. Checks go from the outside to the inside: the length, JSON, one object, the
// protocol's version, the message's type, and then each field (codec_decoder.h). The first thing
// that is wrong ends the decoding with kProtocol and a text that says what it was.
//
// The order matters. A message that is too long is refused before it is parsed, and no field is
// read of a version that this side does not know. Nothing here throws, whatever the peer sent.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "csrc/wire/codec.h"
#include "csrc/wire/codec_decoder.h"
#include "csrc/wire/codec_fields.h"
#include "csrc/wire/codec_text.h"
#include "csrc/wire/limits.h"

namespace gpushare::wire {
namespace {

using nlohmann::json;

// The first version that a peer may still speak: the one before this, as limits.h promises.
constexpr std::uint64_t kOldestVersion = kProtocolVersion == 1 ? 1 : kProtocolVersion - 1;

Status check_version(const json& object) {
  const auto version = object.find("v");
  if (version == object.end()) return {StatusCode::kProtocol, "field v is missing"};
  if (!version->is_number_unsigned()) {
    return {StatusCode::kProtocol, "field v must be an integer, the protocol's version"};
  }
  const auto number = version->get<std::uint64_t>();
  if (number >= kOldestVersion && number <= kProtocolVersion) return {};
  return {StatusCode::kProtocol,
          fmt::format("protocol version {} is not spoken here; this side speaks {}", number,
                      kProtocolVersion)};
}

// One object, no longer than a message may be. errors: kProtocol.
Result<json> parse_json(std::string_view text) {
  if (text.size() > kMaxMessageBytes) {
    return fail(StatusCode::kProtocol,
                fmt::format("message of {} B, at most {} allowed", text.size(), kMaxMessageBytes));
  }
  // false: what is no JSON comes back as a discarded value instead of an exception.
  json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) return fail(StatusCode::kProtocol, "message is not JSON");
  if (!object.is_object()) return fail(StatusCode::kProtocol, "message is not a JSON object");
  return object;
}

// The same, with a known version. errors: kProtocol.
Result<json> parse_object(std::string_view text) {
  Result<json> object = parse_json(text);
  if (!object.has_value()) return object;
  const Status status = check_version(*object);
  if (!status.ok()) return fail(status);
  return object;
}

// Reads all fields, or says which one was wrong first. A message without a list of fields comes
// from the page or from the daemon itself; a socket that carries one is refused.
template <typename Message>
Status decode_fields(const json& object, Message& message) {
  if constexpr (codec::HasFields<codec::Decoder, Message>) {
    codec::Decoder decoder(object, Message::kType);
    codec::list_fields(decoder, message);
    return decoder.status();
  } else {
    return {StatusCode::kProtocol, fmt::format("{}: a socket may not carry it", Message::kType)};
  }
}

// Decodes into `result` if the type is that of Message. Returns whether it was, so that decode()
// can stop at the first type that fits.
template <typename Variant, typename Message>
bool decode_if(const json& object, std::string_view type, std::optional<Result<Variant>>& result) {
  if (type != Message::kType) return false;
  Message message;
  Status status = decode_fields(object, message);
  if (status.ok()) {
    result = Variant(std::move(message));
  } else {
    result = fail(std::move(status));
  }
  return true;
}

// Tries the types one after the other. The second parameter only says which types there are.
template <typename... Messages>
Result<std::variant<Messages...>> decode(std::string_view text,
                                         const std::variant<Messages...>* /*alternatives*/) {
  using Variant = std::variant<Messages...>;
  const Result<json> object = parse_object(text);
  if (!object.has_value()) return fail(object.error());
  const auto found = object->find("type");
  if (found == object->end() || !found->is_string()) {
    return fail(StatusCode::kProtocol, "field type is missing or not a string");
  }
  const auto& type = found->template get_ref<const std::string&>();
  std::optional<Result<Variant>> result;
  if (!(decode_if<Variant, Messages>(*object, type, result) || ...)) {
    return fail(StatusCode::kProtocol,
                fmt::format("unknown message \"{}\"", codec::to_printable(type)));
  }
  return *std::move(result);
}

}  // namespace

Result<JobMessage> decode_from_job(std::string_view text) {
  return decode(text, static_cast<const JobMessage*>(nullptr));
}

Result<CoordinatorMessage> decode_from_coordinator(std::string_view text) {
  return decode(text, static_cast<const CoordinatorMessage*>(nullptr));
}

// Without a version: it comes from this process's own Python, and not from a socket.
Result<JobSettings> decode_settings(std::string_view text) {
  const Result<json> object = parse_json(text);
  if (!object.has_value()) return fail(object.error());
  JobSettings settings;
  codec::Decoder decoder(*object, "settings");
  codec::list_fields(decoder, settings);
  if (Status status = decoder.status(); !status.ok()) return fail(std::move(status));
  return settings;
}

}  // namespace gpushare::wire
