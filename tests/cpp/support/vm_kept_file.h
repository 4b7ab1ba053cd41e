// A memfd of a fake, mapped whole, that the next fake of the same size uses again.
//
// Tests of failing calls make hundreds of fakes, each for one call that fails. With a new memfd
// each time, nine tenths of their time went to the kernel, which cleared and mapped page by page. A
// kept file has its pages already.
//
// It comes with whatever bytes it was left with, so each fake poisons what it hands out or what it
// leaves behind. The first kMostKept bytes are kept at most, and the rest given back.
//
// threads: any may make and destroy one.
#pragma once

#include <cstddef>

#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::testing {

class KeptFile {
 public:
  static constexpr Bytes kMostKept = mib(128);

  explicit KeptFile(Bytes size);
  ~KeptFile();
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::byte* view() const { return view_; }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  const Bytes size_;
  UniqueFd fd_;
  std::byte* view_ = nullptr;
};

}  // namespace gpushare::testing
