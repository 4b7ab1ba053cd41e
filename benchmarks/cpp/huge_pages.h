// Touched private memory in huge pages, of the kind the allocator's device consists of: what a
// plain copy is measured on.
#pragma once

#include <cstddef>

#include "csrc/base/units.h"

namespace gpushare::benchmarks {

class HugePages {
 public:
  explicit HugePages(Bytes size);
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t length_ = 0;
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace gpushare::benchmarks
