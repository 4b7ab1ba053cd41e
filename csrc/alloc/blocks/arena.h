// An arena: all segments of one lifetime and treatment, small and large ones apart.
//
// `private` memory is made while the lease is open, `outside` memory while it is closed. Which
// arena an allocation goes to is the route's choice, not the arena's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "csrc/alloc/blocks/size_pool.h"
#include "csrc/alloc/blocks/stats.h"

namespace gpushare::alloc {

// "private" "outside".
const char* name_of(Route arena);
// "small" "large".
const char* name_of(SizeClass size_class);

class Arena {
 public:
  // Both must outlive it.
  Arena(Route kind, BlockStore& store, Books& books)
      : small_(kind, SizeClass::kSmall, store, books),
        large_(kind, SizeClass::kLarge, store, books) {}

  [[nodiscard]] SizePool& pool(SizeClass size_class) {
    return size_class == SizeClass::kSmall ? small_ : large_;
  }
  // Large blocks first: fewer, and more chunks in each.
  [[nodiscard]] std::array<SizePool*, 2> pools() { return {&large_, &small_}; }
  [[nodiscard]] std::array<const SizePool*, 2> pools() const { return {&large_, &small_}; }

  void recount_all();
  void append_snapshot(std::vector<SegmentInfo>& segments) const;
  void check_invariants() const;

 private:
  SizePool small_, large_;
};

}  // namespace gpushare::alloc
