// Message -> JSON text, by the lists in codec_fields.h. Encoding cannot fail for what a message
// holds: bytes that are no UTF-8 are replaced, since JSON cannot hold them, and prose over
// kMaxTextBytes is cut, since the peer would refuse it. Only our own bug stops it: a message that
// no socket may carry.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "csrc/base/check.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/codec_fields.h"
#include "csrc/wire/codec_text.h"
#include "csrc/wire/limits.h"

namespace gpushare::wire {
namespace {

// Keeps the order of fields, so that a reader of the log finds version and type in front.
using Json = nlohmann::ordered_json;

// Writes the fields that list_fields() names, into one flat object. It has a function for each type
// of field, as the Decoder has, so both sides are written down once (codec_fields.h).
class Encoder {
 public:
  template <typename T>
  using Ref = const T&;

  explicit Encoder(const char* type) : object_{{"v", kProtocolVersion}, {"type", type}} {}

  void field(const char* name, std::uint64_t value) { object_[name] = value; }
  void field(const char* name, std::uint32_t value) { object_[name] = value; }
  void field(const char* name, std::int32_t value) { object_[name] = value; }
  void field(const char* name, bool value) { object_[name] = value; }
  void field(const char* name, Bytes value) { object_[name] = value.value(); }
  void field(const char* name, Nanos value) { object_[name] = value.value(); }
  void field(const char* name, JobId value) { object_[name] = value.value; }
  void field(const char* name, Term value) { object_[name] = value.value; }
  void field(const char* name, Priority value) { object_[name] = name_of(value); }
  void field(const char* name, const std::string& value) { document(name, value); }
  template <typename T>
  void field(const char* name, const std::optional<T>& value) {
    if (value.has_value()) field(name, *value);
  }
  // A peer that is older ignores a field it does not know, so the encoder writes it always.
  template <typename T>
  void newer_field(const char* name, const T& value) {
    field(name, value);
  }
  void newer_text(const char* name, const std::string& value) { text(name, value); }
  void text(const char* name, const std::string& value) {
    object_[name] = codec::to_utf8(value, kMaxTextBytes);
  }
  void document(const char* name, const std::string& value) {
    object_[name] = codec::to_utf8(value, std::numeric_limits<std::size_t>::max());
  }
  void slots(const char* name, const std::vector<std::uint32_t>& value) { object_[name] = value; }
  void weight(double value) { object_["weight"] = value; }
  void weight(const std::optional<double>& value) {
    if (value.has_value()) weight(*value);
  }
  void newer_share(const char* name, double value) { object_[name] = value; }
  void newer_share(const char* name, const std::optional<double>& value) {
    if (value.has_value()) newer_share(name, *value);
  }
  void ranks(std::uint32_t rank, std::uint32_t ranks) {
    field("rank", rank);
    field("ranks", ranks);
  }

  [[nodiscard]] std::string dump() const {
    // to_utf8() has replaced all that is no UTF-8 already. The handler makes sure that dump()
    // cannot throw.
    return object_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Json object_;
};

template <typename Message>
std::string encode_message(const Message& message) {
  Encoder encoder(Message::kType);
  if constexpr (codec::HasFields<Encoder, Message>) {
    codec::list_fields(encoder, message);
  } else {
    GS_CHECK(false, "a socket may not carry {}", Message::kType);
  }
  return encoder.dump();
}

}  // namespace

std::string encode(const JobMessage& message) {
  return std::visit([](const auto& one) { return encode_message(one); }, message);
}

std::string encode(const CoordinatorMessage& message) {
  return std::visit([](const auto& one) { return encode_message(one); }, message);
}

}  // namespace gpushare::wire
