#include "csrc/alloc/blocks/tally.h"

#include <rapidcheck.h>

#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/alloc/blocks/books.h"

namespace gpushare::alloc {
namespace {

void expect_equal(const Stat& a, const Stat& b, const char* name) {
  RC_LOG(name);
  RC_ASSERT(a.current == b.current);
  RC_ASSERT(a.peak == b.peak);
  RC_ASSERT(a.allocated == b.allocated);
  RC_ASSERT(a.freed == b.freed);
}

void expect_equal(const PooledStat& a, const PooledStat& b, const char* name) {
  expect_equal(a.all, b.all, name);
  expect_equal(a.small_pool, b.small_pool, name);
  expect_equal(a.large_pool, b.large_pool, name);
}

// One thread allocates, now from its cache and now from the pools, and tells the books before each
// of the latter: they must not see a difference, not in the peaks either.
RC_GTEST_PROP(Tally, TellsTheBooksWhatTheyWouldHaveSeen, ()) {
  Books directly{Bytes{INT64_MAX}};
  Books through_tally{Bytes{INT64_MAX}};
  Tally tally;
  std::vector<Bytes> live;
  const int num_steps = *rc::gen::inRange(0, 100);
  for (int i = 0; i < num_steps; ++i) {
    const bool is_cached = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
    if (!is_cached) through_tally.add(Route::kPrivate, std::exchange(tally, {}));
    if (!live.empty() && *rc::gen::arbitrary<bool>()) {
      const Bytes requested = live.back();
      live.pop_back();
      const SizeClass size_class = size_class_of(requested);
      const Bytes size = block_size_of(requested);
      directly.on_free(Route::kPrivate, size_class, size, requested);
      if (is_cached) {
        tally.on_free(size_class, size, requested);
      } else {
        through_tally.on_free(Route::kPrivate, size_class, size, requested);
      }
      continue;
    }
    const Bytes requested{*rc::gen::inRange<std::int64_t>(1, 3 << 20)};
    live.push_back(requested);
    const SizeClass size_class = size_class_of(requested);
    const Bytes size = block_size_of(requested);
    directly.on_allocate(Route::kPrivate, size_class, size, requested);
    if (is_cached) {
      tally.on_allocate(size_class, size, requested);
    } else {
      through_tally.on_allocate(Route::kPrivate, size_class, size, requested);
    }
  }
  through_tally.add(Route::kPrivate, tally);
  const MemoryStats a = directly.stats();
  const MemoryStats b = through_tally.stats();
  expect_equal(a.allocation, b.allocation, "allocation");
  expect_equal(a.allocated_bytes, b.allocated_bytes, "allocated_bytes");
  expect_equal(a.requested_bytes, b.requested_bytes, "requested_bytes");
  RC_ASSERT(a.inactive_split_bytes.all.current == b.inactive_split_bytes.all.current);
  RC_ASSERT(a.num_operations == b.num_operations);
  RC_ASSERT(a.live_private_bytes == b.live_private_bytes);
}

}  // namespace
}  // namespace gpushare::alloc
