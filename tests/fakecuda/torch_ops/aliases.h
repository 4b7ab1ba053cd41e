// CPU tensors over the bytes of CUDA tensors: what a CPU kernel can be given in their place.
#pragma once

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "tests/fakecuda/fakecuda.h"

namespace fakecuda_ops {

// The tensor itself if it is not a CUDA tensor.
at::Tensor cpu_alias(const at::Tensor& tensor);
// All bytes from the tensor's first element to its last.
fakecuda_range range_of(const at::Tensor& tensor);

// A kernel on the current stream, from here to the end of the scope. Raises torch's CUDA error if
// it may not read or write these. In the scope no CUDA function is called.
class Kernel {
 public:
  Kernel(const char* name,
         const std::vector<fakecuda_range>& reads,
         const std::vector<fakecuda_range>& writes);
  ~Kernel() { fakecuda_kernel_end(); }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
};

// The arguments of one operator that were replaced by aliases, to find results among them again.
class Aliases {
 public:
  // Keeps the device of CUDA tensors for the results.
  at::Tensor replace(const at::Tensor& tensor, bool is_written);

  // The CUDA tensor of a result: the argument whose alias it is, or a new one with its values.
  at::Tensor restore(const at::Tensor& result, const char* name) const;
  // `out=` arguments that the kernel has resized.
  void write_back_resized(const char* name);

  void set_device(at::Device device) { device_ = device; }
  [[nodiscard]] const std::vector<fakecuda_range>& reads() const { return reads_; }
  [[nodiscard]] const std::vector<fakecuda_range>& writes() const { return writes_; }

 private:
  at::Device device_ = at::Device(at::kCUDA);
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;  // the argument, its alias
  std::vector<fakecuda_range> reads_;
  std::vector<fakecuda_range> writes_;
};

}  // namespace fakecuda_ops
