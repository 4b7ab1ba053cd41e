#include "tests/cpp/support/alloc_bytes.h"

#include <algorithm>
#include <cstring>

namespace gpushare::testing {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t word_at(std::uint64_t seed, std::size_t offset) {
  return (seed + 1) * 0x9E3779B97F4A7C15U ^ offset;
}

// Calls `visit(offset)` for each marked word; stops where it says false.
template <typename Visit>
bool for_each_mark(std::size_t size, std::size_t step, Visit visit) {
  if (size < kWord) return true;
  for (std::size_t offset = 0; offset + kWord <= size; offset += step) {
    if (!visit(offset)) return false;
  }
  return visit(size - kWord);
}

}  // namespace

void fill(void* address, Bytes size, std::uint64_t seed, std::size_t step) {
  for_each_mark(size.to_size(), step, [&](std::size_t offset) {
    const std::uint64_t word = word_at(seed, offset);
    std::memcpy(static_cast<std::byte*>(address) + offset, &word, kWord);
    return true;
  });
}

bool is_filled(const void* address, Bytes size, std::uint64_t seed, std::size_t step) {
  // The last word may overlie the end of the mark before it.
  const std::size_t last = std::max(size.to_size(), kWord) - kWord;
  return for_each_mark(size.to_size(), step, [&](std::size_t offset) {
    if (offset < last && offset + kWord > last) return true;
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(address) + offset, kWord);
    return word == word_at(seed, offset);
  });
}

}  // namespace gpushare::testing
