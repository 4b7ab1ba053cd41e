// A range of addresses in this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fakecuda {

struct Range {
  uintptr_t begin = 0;
  size_t bytes = 0;

  [[nodiscard]] uintptr_t end() const { return begin + bytes; }
  [[nodiscard]] bool overlaps(const Range& other) const {
    return begin < other.end() && other.begin < end();
  }
  [[nodiscard]] bool contains(const Range& other) const {
    return begin <= other.begin && other.end() <= end();
  }
};

inline Range range_at(const void* begin, size_t bytes) {
  return {reinterpret_cast<uintptr_t>(begin), bytes};
}

}  // namespace fakecuda
