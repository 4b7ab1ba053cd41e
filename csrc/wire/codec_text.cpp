#include "csrc/wire/codec_text.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpushare::wire::codec {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<std::uint8_t>(text[at]) : std::uint8_t{0};
}

// The second byte's range depends on the first: it excludes overlong forms, surrogates and what is
// above U+10FFFF. source: Unicode 15, table 3-7.
bool is_second_byte(std::uint8_t first, std::uint8_t second) {
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  return second >= low && second <= high;
}

std::size_t length_by_first_byte(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return 2;
  return first < 0xF0 ? 3 : 4;
}

// Bytes of the character that starts `text`; 0 if none does.
std::size_t character_length(std::string_view text) {
  const std::uint8_t first = byte_at(text, 0);
  const std::size_t length = length_by_first_byte(first);
  if (length >= 2 && !is_second_byte(first, byte_at(text, 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string to_utf8(std::string_view text, std::size_t max_bytes) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view piece = length == 0 ? "?" : text.substr(0, length);
    if (clean.size() + piece.size() > max_bytes) break;
    clean += piece;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

std::string to_printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 32;
  std::string clean(text.substr(0, kMaxLength));
  for (char& letter : clean) {
    if (letter < 0x20 || letter > 0x7E) letter = '?';
  }
  return clean;
}

}  // namespace gpushare::wire::codec
