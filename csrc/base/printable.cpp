// How text of others is cleaned: one UTF-8 character after the other. A byte that begins no valid
// character becomes '?', and reading goes on at the next byte. A valid character that has no place
// in a line becomes one '?' as well. So the result is never longer than the text, and cleaning it
// again changes nothing.
#include "csrc/base/printable.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpushare {
namespace {

// 0 behind the end. No character goes on with a zero byte, so one that is cut off counts as
// invalid.
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

// 0 where no character begins: 0x80 to 0xBF continue one, 0xC0 and 0xC1 would be overlong, and
// above 0xF4 there is nothing in Unicode.
std::size_t length_by_first_byte(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return 2;
  return first < 0xF0 ? 3 : 4;
}

// The code point. pre: `character` is one character in UTF-8.
std::uint32_t code_of(std::string_view character) {
  const std::uint32_t first = byte_at(character, 0);
  if (character.size() == 1) return first;
  // The first of n bytes has n ones and a zero before its bits of the code.
  std::uint32_t code = first & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i)
    code = (code << 6) | (byte_at(character, i) & 0x3FU);
  return code;
}

bool has_a_place_in_a_line(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return false;  // C0, DEL, C1
  if (code >= 0x200B && code <= 0x200F) return false;               // no width; direction
  if (code >= 0x2028 && code <= 0x202E) return false;               // separators; direction
  if (code >= 0x2060 && code <= 0x206F) return false;               // no width; direction
  // The Arabic mark of direction, the byte order mark, and tags, which show nothing.
  return code != 0x061C && code != 0xFEFF && (code < 0xE0000 || code > 0xE007F);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const std::uint8_t first = byte_at(text, 0);
  const std::size_t length = length_by_first_byte(first);
  if (length >= 2 && !is_second_byte(first, byte_at(text, 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  return text.empty() ? 0 : length;
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length);
    if (length > 0 && has_a_place_in_a_line(code_of(character))) {
      clean += character;
    } else {
      clean += '?';
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

}  // namespace gpushare
