// The visitor of codec_fields.h that reads a JSON object from a peer: it checks presence, type and
// range of each field, and keeps the first thing that was wrong. Unknown fields are ignored, so
// that a newer peer may say more. It never throws: each value's type is asked before it is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "csrc/base/status.h"
#include "csrc/wire/messages.h"

namespace gpushare::wire::codec {

class Decoder {
 public:
  template <typename T>
  using Ref = T&;

  // `object` must outlive it. `type` is the message's, for errors.
  Decoder(const nlohmann::json& object, const char* type) : object_(object), type_(type) {}

  void field(const char* name, std::uint64_t& value);
  void field(const char* name, std::uint32_t& value);
  void field(const char* name, std::int32_t& value);
  void field(const char* name, bool& value);
  void field(const char* name, Bytes& value);
  void field(const char* name, Nanos& value);
  void field(const char* name, JobId& value);
  void field(const char* name, Term& value);
  void field(const char* name, Priority& value);
  void field(const char* name, std::string& value) { string(name, value, kMaxNameBytes); }
  template <typename T>
  void field(const char* name, std::optional<T>& value) {
    if (has(name)) field(name, value.emplace());
  }
  // If the field is absent, `value` stays as it is.
  template <typename T>
  void newer_field(const char* name, T& value) {
    if (has(name)) field(name, value);
  }
  void newer_text(const char* name, std::string& value) {
    if (has(name)) text(name, value);
  }
  void text(const char* name, std::string& value) { string(name, value, kMaxTextBytes); }
  // JSON in itself: to be parsed, not to be shown, and taken as it is.
  void document(const char* name, std::string& value);
  void slots(const char* name, std::vector<std::uint32_t>& value);
  void weight(double& value);
  void weight(std::optional<double>& value) {
    if (has("weight")) weight(value.emplace());
  }
  void newer_share(const char* name, double& value);
  void newer_share(const char* name, std::optional<double>& value) {
    if (has(name)) newer_share(name, value.emplace());
  }
  void ranks(std::uint32_t& rank, std::uint32_t& ranks);

  // The first failure; ok if there was none.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  [[nodiscard]] bool has(const char* name) const { return object_.contains(name); }
  // Null if there is no such field, or something was wrong before.
  const nlohmann::json* find(const char* name);
  // An integer from 0 to `max`; 0 if refused.
  std::uint64_t integer(const char* name, std::uint64_t max);
  void string(const char* name, std::string& value, std::size_t max_bytes);
  // The text as the peer sent it; null if it is refused.
  const std::string* foreign_text(const char* name, std::size_t max_bytes);
  void refuse(const char* name, const std::string& what);

  const nlohmann::json& object_;
  const char* type_;
  Status status_;
};

}  // namespace gpushare::wire::codec
