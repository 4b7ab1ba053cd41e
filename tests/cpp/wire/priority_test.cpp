#include "csrc/wire/priority.h"

#include <optional>

#include <gtest/gtest.h>

namespace gpushare::wire {
namespace {

TEST(Priority, EveryNameIsReadBack) {
  for (const Priority priority : {Priority::kGuaranteed, Priority::kInteractive, Priority::kNormal,
                                  Priority::kOpportunistic}) {
    EXPECT_EQ(parse_priority(name_of(priority)), std::optional(priority));
  }
}

TEST(Priority, HasTheNamesThatUsersWrite) {
  EXPECT_EQ(parse_priority("guaranteed"), Priority::kGuaranteed);
  EXPECT_EQ(parse_priority("interactive"), Priority::kInteractive);
  EXPECT_EQ(parse_priority("normal"), Priority::kNormal);
  EXPECT_EQ(parse_priority("opportunistic"), Priority::kOpportunistic);
}

TEST(Priority, OtherTextIsNone) {
  EXPECT_EQ(parse_priority(""), std::nullopt);
  EXPECT_EQ(parse_priority("Normal"), std::nullopt);
  EXPECT_EQ(parse_priority("normal "), std::nullopt);
  EXPECT_EQ(parse_priority("unknown"), std::nullopt);
}

}  // namespace
}  // namespace gpushare::wire
