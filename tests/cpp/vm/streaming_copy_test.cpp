#include "csrc/vm/calls/streaming_copy.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::vm {
namespace {

constexpr std::size_t kMargin = 64;
constexpr std::byte kUntouched{0xEE};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

// Of memory that begins so many bytes after a line of the cache begins, or near it.
void expect_copies(std::size_t size, std::size_t to_offset, std::size_t from_offset) {
  const std::vector<std::byte> from = pattern(from_offset + size + kMargin);
  std::vector<std::byte> to(to_offset + size + kMargin, kUntouched);
  streaming_copy(to.data() + to_offset, from.data() + from_offset, size);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool is_inside = i >= to_offset && i < to_offset + size;
    const std::byte expected = is_inside ? from[from_offset + i - to_offset] : kUntouched;
    ASSERT_EQ(to[i], expected) << "byte " << i << " of " << size << " at " << to_offset << " from "
                               << from_offset;
  }
}

TEST(StreamingCopy, CopiesEverySizeFromAndToEveryAlignment) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 63U, 64U, 65U, 127U, 128U, 200U, 4096U, 4097U}) {
    for (std::size_t offset = 0; offset < kMargin; offset += 5) {
      expect_copies(size, offset, 0);
      expect_copies(size, 0, offset);
      expect_copies(size, offset, kMargin - offset);
    }
  }
}

TEST(StreamingCopy, CopiesAChunk) { expect_copies(std::size_t{2} << 20, 0, 0); }

}  // namespace
}  // namespace gpushare::vm
