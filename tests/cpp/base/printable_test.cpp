#include "csrc/base/printable.h"

#include <string>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  for (const std::string text :
       {"", "train.py --lr 1e-3", "\xC3\xA9", "\xE2\x82\xAC", "\xE6\x97\xA5\xE6\x9C\xAC",
        "\xF0\x9F\x98\x80", "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D", "~"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, TakesAwayWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[2Jname"), "?[2Jname");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "?]0;title?");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "?2J");  // C1: a control sequence in one character
  EXPECT_EQ(printable("\x7F\b\t"), "???");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(Printable, KeepsALineALine) {
  EXPECT_EQ(printable("done\n2026-11-25 12:00:00 info all is well\r"),
            "done?2026-11-25 12:00:00 info all is well?");
  EXPECT_EQ(printable("\xE2\x80\xA8\xE2\x80\xA9\xC2\x85"), "???");
}

TEST(Printable, TakesAwayMarksOfDirectionAndWhatHasNoWidth) {
  // U+202E, which turns what follows around; U+2066; U+200F; U+061C; U+200B; U+FEFF; a tag.
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "a\xE2\x81\xA6\xE2\x80\x8F\xD8\x9C"),
            "?a???");
  EXPECT_EQ(printable("\xE2\x80\x8B\xEF\xBB\xBF\xF3\xA0\x81\x81"), "???");
}

TEST(Printable, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(printable("a\xFF"
                      "b"),
            "a?b");
  EXPECT_EQ(printable("\xC0\xAF\xED\xA0\x80"), "?????");
  EXPECT_EQ(printable("\xE2\x82"), "??");
}

}  // namespace
}  // namespace gpushare
