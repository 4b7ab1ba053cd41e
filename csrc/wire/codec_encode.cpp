// Message -> JSON text, by the lists in codec_fields.h and the visitor in codec_encoder.h. Only our
// own bug stops it: a message that no socket may carry.
#include <string>
#include <variant>

#include "csrc/base/check.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/codec_encoder.h"
#include "csrc/wire/codec_fields.h"

namespace gpushare::wire {
namespace {

template <typename Message>
std::string encode_message(const Message& message) {
  codec::Encoder encoder(Message::kType);
  if constexpr (codec::HasFields<codec::Encoder, Message>) {
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
