#include "csrc/vm/tier/tiered_slab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/vm/contract/vmm.h"

#include "tests/cpp/support/vm_temp_folder.h"

namespace gpushare::testing {
namespace {

using ::testing::HasSubstr;
using vm::kChunkBytes;

class TieredSlab : public ::testing::Test {
 protected:
  vm::SlotId take() { return slab_->take().value(); }

  TempFolder folder_;
  std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab(folder_.path(), {kChunkBytes * 2, kChunkBytes * 3}));
};

TEST_F(TieredSlab, UsesTheFileWhenRamIsFullAndRamAgainWhenItIsNot) {
  const vm::SlotId first = take();
  static_cast<void>(take());
  EXPECT_EQ(slab_->used_by_tier(), (HostBytes{kChunkBytes * 2, Bytes{}}));
  const vm::SlotId third = take();
  EXPECT_EQ(slab_->used_by_tier(), (HostBytes{kChunkBytes * 2, kChunkBytes}));
  EXPECT_FALSE(slab_->is_in_file(first));
  EXPECT_TRUE(slab_->is_in_file(third));
  slab_->give_back(first);
  EXPECT_EQ(take(), first);
  slab_->give_back(third);
  EXPECT_EQ(slab_->used_by_tier(), (HostBytes{kChunkBytes * 2, Bytes{}}));
}

TEST_F(TieredSlab, IsFullWhenBothAreAndNamesBoth) {
  for (int i = 0; i < 5; ++i)
    static_cast<void>(take());
  const Result<vm::SlotId> sixth = slab_->take();
  ASSERT_FALSE(sixth.has_value());
  EXPECT_EQ(sixth.error().code(), StatusCode::kHostTierFull);
  EXPECT_THAT(sixth.error().message(), HasSubstr("in RAM: 4.0 MiB used of 4.0 MiB"));
  EXPECT_THAT(sixth.error().message(),
              HasSubstr("in " + folder_.path() + ": 6.0 MiB used of 6.0 MiB"));
}

TEST_F(TieredSlab, TakesFromNoPartBeyondWhatIsAllowed) {
  EXPECT_TRUE(slab_->is_in_file(slab_->take_within({Bytes{}, kChunkBytes}).value()));
  EXPECT_FALSE(slab_->is_in_file(slab_->take_within({kChunkBytes, Bytes{}}).value()));
  const Result<vm::SlotId> none = slab_->take_within({kChunkBytes - Bytes{1}, Bytes{}});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kHostTierFull);
  EXPECT_THAT(none.error().message(), HasSubstr("the rest is for other jobs"));
  EXPECT_EQ(slab_->used_by_tier(), (HostBytes{kChunkBytes, kChunkBytes}));
}

TEST_F(TieredSlab, NumbersOfTheTwoPartsAreNeverNeighbours) {
  static_cast<void>(take());
  const vm::SlotId last_in_ram = take();
  const vm::SlotId first_in_file = take();
  EXPECT_NE(last_in_ram.value + 1, first_in_file.value);
  const auto in_ram = slab_->place_of(last_in_ram);
  const auto in_file = slab_->place_of(first_in_file);
  EXPECT_NE(in_ram->fd, in_file->fd);
  EXPECT_EQ(in_file->offset, 0);
  EXPECT_NE(slab_->address_of(last_in_ram), nullptr);
  EXPECT_EQ(slab_->address_of(first_in_file), nullptr);
}

TEST(HostSlabWithoutAFolder, IsRamAloneWhateverTheFileMayHave) {
  const auto slab = std::move(*vm::make_host_slab("", HostBytes{kChunkBytes, kChunkBytes}));
  static_cast<void>(slab->take().value());
  EXPECT_FALSE(slab->take().has_value());
  EXPECT_EQ(slab->used_by_tier(), (HostBytes{kChunkBytes, Bytes{}}));
}

}  // namespace
}  // namespace gpushare::testing
