// Text of others, made fit to be shown.
//
// Which problem it solves: names, command lines and reasons come from other processes, and end in
// logs, errors and terminals. An escape sequence would be obeyed there, a line break would forge a
// line, a mark of direction would turn the rest of the line around. All such text goes through
// printable() where it enters: what a peer sends (wire/codec_decoder.cpp), what is read from /proc,
// and once more each line of the log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpushare {

// `text` as UTF-8, with '?' for each byte that is no part of a character, and for each character
// that has no place in a line of text: controls (C0 with line breaks and tabs, DEL, C1), separators
// of lines and paragraphs, marks of direction, and what has no width.
std::string printable(std::string_view text);

// The bytes of the UTF-8 character that starts `text`; 0 if none does.
std::size_t utf8_length(std::string_view text);

}  // namespace gpushare
