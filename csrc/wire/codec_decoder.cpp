// How one field is read. Each value comes from a peer that is not trusted, so its type is asked
// before it is taken (the JSON library throws otherwise), then its range is checked. The first
// failure is kept. After it find() answers null, so the fields that follow are skipped and cannot
// hide it. Values of a message that failed may be incomplete; its caller refuses the whole message.
//
// All integers have to be unsigned in JSON, also those whose field is signed: no size, time or
// number in a message is negative.
#include "csrc/wire/codec_decoder.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "csrc/base/printable.h"
#include "csrc/wire/codec_text.h"
#include "csrc/wire/limits.h"

namespace gpushare::wire::codec {
namespace {

template <typename T>
constexpr std::uint64_t kMaxOf = static_cast<std::uint64_t>(std::numeric_limits<T>::max());

// The value, for an error text. A string, an array or an object is only named by its type, since
// the peer chose how long it is.
std::string describe(const nlohmann::json& value) {
  if (value.is_number() || value.is_boolean()) return value.dump();
  return fmt::format("a value of type {}", value.type_name());
}

}  // namespace

// The first refusal counts. All later fields are passed over then.
void Decoder::refuse(const char* name, const std::string& what) {
  if (!status_.ok()) return;
  status_ = Status(StatusCode::kProtocol, fmt::format("{}: field {} {}", type_, name, what));
}

// Null if the field is missing, which refuses the message, or if the message is refused already.
const nlohmann::json* Decoder::find(const char* name) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  if (found != object_.end()) return &*found;
  refuse(name, "is missing");
  return nullptr;
}

// Negative numbers and those with a fraction have other types in JSON, so they are refused with the
// rest.
std::uint64_t Decoder::integer(const char* name, std::uint64_t max) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return 0;
  if (value->is_number_unsigned()) {
    const auto number = value->get<std::uint64_t>();
    if (number <= max) return number;
  }
  refuse(name, fmt::format("is {}, must be an integer from 0 to {}", describe(*value), max));
  return 0;
}

// The text as it came. Its length is checked before anybody works with it.
const std::string* Decoder::foreign_text(const char* name, std::size_t max_bytes) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return nullptr;
  if (!found->is_string()) {
    refuse(name, fmt::format("is {}, must be a string", describe(*found)));
    return nullptr;
  }
  const auto& text = found->get_ref<const std::string&>();
  if (text.size() <= max_bytes) return &text;
  refuse(name, fmt::format("has {} B, must have at most {}", text.size(), max_bytes));
  return nullptr;
}

// Names and prose end in logs and terminals, so they are cleaned where they enter.
void Decoder::string(const char* name, std::string& value, std::size_t max_bytes) {
  if (const std::string* text = foreign_text(name, max_bytes)) value = printable(*text);
}

// A document is parsed by its reader and not shown, so it stays as it came.
void Decoder::document(const char* name, std::string& value) {
  if (const std::string* text = foreign_text(name, kMaxMessageBytes)) value = *text;
}

void Decoder::field(const char* name, std::uint64_t& value) {
  value = integer(name, kMaxOf<std::uint64_t>);
}

void Decoder::field(const char* name, std::uint32_t& value) {
  value = static_cast<std::uint32_t>(integer(name, kMaxOf<std::uint32_t>));
}

void Decoder::field(const char* name, std::int32_t& value) {
  value = static_cast<std::int32_t>(integer(name, kMaxOf<std::int32_t>));
}

void Decoder::field(const char* name, bool& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (found->is_boolean()) {
    value = found->get<bool>();
  } else {
    refuse(name, fmt::format("is {}, must be true or false", describe(*found)));
  }
}

void Decoder::field(const char* name, Bytes& value) {
  value = Bytes{static_cast<std::int64_t>(integer(name, kMaxAmount))};
}

void Decoder::field(const char* name, Nanos& value) {
  value = Nanos{static_cast<std::int64_t>(integer(name, kMaxAmount))};
}

void Decoder::field(const char* name, JobId& value) {
  value = JobId{integer(name, kMaxOf<std::uint64_t>)};
}

void Decoder::field(const char* name, Term& value) {
  // The lease word has 60 bits for the term. This bound leaves room for the term that follows.
  value = Term{integer(name, kMaxAmount / 2)};
}

void Decoder::field(const char* name, Priority& value) {
  std::string text;
  string(name, text, kMaxNameBytes);
  if (!status_.ok()) return;
  if (const auto priority = parse_priority(text)) {
    value = *priority;
  } else {
    refuse(name, fmt::format("is \"{}\", must be guaranteed, interactive, normal or opportunistic",
                             to_printable(text)));
  }
}

// Both the count and each number are bounded, since the peer chose them.
void Decoder::slots(const char* name, std::vector<std::uint32_t>& value) {
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_array() || found->size() > kMaxLaneSlots) {
    return refuse(name, fmt::format("must be an array of at most {} numbers", kMaxLaneSlots));
  }
  for (const nlohmann::json& slot : *found) {
    const bool is_number = slot.is_number_unsigned() && slot.get<std::uint64_t>() < kMaxLaneSlot;
    if (!is_number) {
      return refuse(name, fmt::format("has {}, must have integers from 0 to {}", describe(slot),
                                      kMaxLaneSlot - 1));
    }
    value.push_back(slot.get<std::uint32_t>());
  }
}

void Decoder::weight(double& value) {
  const nlohmann::json* found = find("weight");
  if (found == nullptr) return;
  const double number = found->is_number() ? found->get<double>() : 0.0;
  if (std::isfinite(number) && number > 0.0) {
    value = number;
  } else {
    refuse("weight", fmt::format("is {}, must be a number above 0", describe(*found)));
  }
}

// An older peer does not send this field; the value then stays as it is.
void Decoder::newer_share(const char* name, double& value) {
  if (!has(name)) return;
  const nlohmann::json* found = find(name);
  if (found == nullptr) return;
  const double number = found->is_number() ? found->get<double>() : -1.0;
  if (number >= 0.0 && number <= 1.0) {
    value = number;
  } else {
    refuse(name, fmt::format("is {}, must be a number from 0 to 1", describe(*found)));
  }
}

void Decoder::ranks(std::uint32_t& rank, std::uint32_t& ranks) {
  field("rank", rank);
  ranks = static_cast<std::uint32_t>(integer("ranks", kMaxRanks));
  // ranks 0 has no rank below it, so it is refused here too.
  if (rank >= ranks) refuse("rank", fmt::format("is {}, must be below ranks, {}", rank, ranks));
}

}  // namespace gpushare::wire::codec
