#include "csrc/base/path.h"

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(Path, FolderOfAPath) {
  EXPECT_EQ(folder_of("/run/gpushare/sock"), "/run/gpushare");
  EXPECT_EQ(folder_of("/sock"), "/");
  EXPECT_EQ(folder_of("sock"), ".");
}

}  // namespace
}  // namespace gpushare
