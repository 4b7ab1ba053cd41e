// Text is repaired and cut by whole UTF-8 characters: cutting inside one would make the rest
// invalid.
#include "csrc/wire/codec_text.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "csrc/base/printable.h"

namespace gpushare::wire::codec {
std::string to_utf8(std::string_view text, std::size_t max_bytes) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view piece = length == 0 ? "?" : text.substr(0, length);
    if (clean.size() + piece.size() > max_bytes) break;
    clean += piece;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

// A few characters of what a peer has sent, for an error text. More would let the peer write our
// log.
std::string to_printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 32;
  return to_utf8(printable(text), kMaxBytes);
}

}  // namespace gpushare::wire::codec
