#include "csrc/client/gate/fast_state.h"

#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(FastState, BeginsOpenAndWithoutAPage) {
  const FastState state;
  EXPECT_EQ(state.page(), nullptr);
  EXPECT_FALSE(state.is_closed() || state.has_late());
  EXPECT_EQ(state.num_leases(), 0U);
}

TEST(FastState, APageIsFilledForWhoeverSeesIt) {
  const auto page = std::make_unique<wire::LeasePage>();
  FastState state;
  std::thread reader([&state] {
    wire::LeasePage* seen = nullptr;
    while (seen == nullptr)
      seen = state.page();
    // Without the order between set_page() and page() this is a race, which ThreadSanitizer finds.
    EXPECT_EQ(seen->epoch, 7U);
  });
  page->epoch = 7;
  state.set_page(page.get());
  reader.join();
  EXPECT_EQ(state.page_under_lock(), page.get());
  state.set_page(nullptr);
  EXPECT_EQ(state.page(), nullptr);
}

TEST(FastState, TellsTheIteratingThreadFromOthers) {
  FastState state;
  EXPECT_FALSE(state.is_iterating_here()) << "none has iterated";
  state.set_iterating_here();
  EXPECT_TRUE(state.is_iterating_here());
  EXPECT_EQ(state.iterating_thread(), this_thread());
  std::thread([&state] {
    EXPECT_FALSE(state.is_iterating_here());
    state.set_iterating_here();
    EXPECT_TRUE(state.is_iterating_here());
  }).join();
  EXPECT_FALSE(state.is_iterating_here()) << "the other thread iterated last";
}

TEST(FastState, KeepsItsFactsApart) {
  FastState state;
  state.set_closed(true);
  EXPECT_TRUE(state.is_closed());
  EXPECT_FALSE(state.has_late());
  state.set_late(true);
  state.set_closed(false);
  EXPECT_TRUE(state.has_late());
  EXPECT_FALSE(state.is_closed());
  state.count_lease();
  state.count_lease();
  EXPECT_EQ(state.num_leases(), 2U);
}

}  // namespace
}  // namespace gpushare::client
