// The visitor of codec_fields.h that writes a message as one flat JSON object. It has a function
// for each type of field, as the Decoder has, so both sides are written down once.
//
// Encoding cannot fail: bytes that are no UTF-8 are replaced, since JSON cannot hold them, and
// prose over kMaxTextBytes is cut, since the peer would refuse it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "csrc/wire/codec_text.h"
#include "csrc/wire/limits.h"
#include "csrc/wire/messages.h"

namespace gpushare::wire::codec {

class Encoder {
 public:
  template <typename T>
  using Ref = const T&;

  explicit Encoder(const char* type, std::uint32_t version = kProtocolVersion)
      : object_{{"v", version}, {"type", type}} {}

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
    object_[name] = to_utf8(value, kMaxTextBytes);
  }
  void document(const char* name, const std::string& value) {
    object_[name] = to_utf8(value, std::numeric_limits<std::size_t>::max());
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
  // Keeps the order of fields, so that a reader of the log finds version and type in front.
  using Json = nlohmann::ordered_json;
  Json object_;
};

}  // namespace gpushare::wire::codec
