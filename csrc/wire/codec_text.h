// Text that JSON can hold. Names, command lines and error texts come from users and the system and
// may be any bytes; the JSON library refuses those that are not UTF-8 by throwing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpushare::wire::codec {

// `text` with '?' for each byte that is not part of a UTF-8 character, cut before the character
// that would make it longer than `max_bytes`. Valid text within the bound is unchanged.
std::string to_utf8(std::string_view text, std::size_t max_bytes);

// For an error about it: printable() (base/printable.h), at most 32 bytes.
std::string to_printable(std::string_view text);

}  // namespace gpushare::wire::codec
