#include "csrc/wire/codec_text.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace gpushare::wire::codec {
namespace {

constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();

TEST(CodecText, LeavesValidTextAlone) {
  for (const std::string text : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                                 "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF", "\x01\x7F"}) {
    EXPECT_EQ(to_utf8(text, kNoBound), text);
  }
}

TEST(CodecText, ReplacesEachBadByte) {
  EXPECT_EQ(to_utf8("a\xFF"
                    "b",
                    kNoBound),
            "a?b");
  EXPECT_EQ(to_utf8("\x80", kNoBound), "?");                 // a continuation alone
  EXPECT_EQ(to_utf8("\xC0\xAF", kNoBound), "??");            // overlong
  EXPECT_EQ(to_utf8("\xE0\x80\xAF", kNoBound), "???");       // overlong
  EXPECT_EQ(to_utf8("\xED\xA0\x80", kNoBound), "???");       // surrogate
  EXPECT_EQ(to_utf8("\xF4\x90\x80\x80", kNoBound), "????");  // above U+10FFFF
  EXPECT_EQ(to_utf8("\xF0\x80\x80\x80", kNoBound), "????");  // overlong
  EXPECT_EQ(to_utf8("\xE2\x82", kNoBound), "??");            // cut off
  EXPECT_EQ(to_utf8("\xE2\x82zz", kNoBound), "??zz");        // third byte is no continuation
}

TEST(CodecText, CutsBetweenCharacters) {
  EXPECT_EQ(to_utf8("abc", 2), "ab");
  EXPECT_EQ(to_utf8("a\xC3\xA9", 2), "a");
  EXPECT_EQ(to_utf8("a\xC3\xA9", 3), "a\xC3\xA9");
  EXPECT_EQ(to_utf8("abc", 0), "");
}

TEST(CodecText, PrintableIsShortAndHarmless) {
  EXPECT_EQ(to_printable("grant"), "grant");
  EXPECT_EQ(to_printable("a\x1b[2J\n\xC3\xA9"), "a?[2J?\xC3\xA9");
  EXPECT_EQ(to_printable(std::string(1000, 'x')), std::string(32, 'x'));
}

}  // namespace
}  // namespace gpushare::wire::codec
