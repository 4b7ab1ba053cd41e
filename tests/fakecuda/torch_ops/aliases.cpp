#include "tests/fakecuda/torch_ops/aliases.h"

#include <cstring>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace fakecuda_ops {
namespace {

// A new CUDA tensor with the values and strides of a CPU tensor, written on the current stream.
at::Tensor on_device(const at::Tensor& cpu, at::Device device, const char* name) {
  at::Tensor result = at::empty_strided(cpu.sizes(), cpu.strides(),
                                        cpu.options().device(device).pinned_memory(std::nullopt));
  if (cpu.numel() == 0) return result;
  const fakecuda_range range = range_of(result);
  const Kernel kernel(name, {}, {range});
  std::memcpy(result.data_ptr(), cpu.data_ptr(), range.bytes);
  return result;
}

}  // namespace

at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  const auto options =
      tensor.options().device(at::kCPU).requires_grad(false).pinned_memory(std::nullopt);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  at::Tensor alias =
      at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), [](void*) {}, options);
  if (tensor.is_conj()) alias._set_conj(true);
  if (tensor.is_neg()) alias._set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    alias.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return alias;
}

fakecuda_range range_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return {nullptr, 0};
  int64_t elements = 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    elements += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return {tensor.data_ptr(), static_cast<size_t>(elements * tensor.element_size())};
}

Kernel::Kernel(const char* name,
               const std::vector<fakecuda_range>& reads,
               const std::vector<fakecuda_range>& writes) {
  const int error = fakecuda_kernel_begin(c10::cuda::getCurrentCUDAStream().stream(), name,
                                          reads.data(), reads.size(), writes.data(), writes.size());
  C10_CUDA_CHECK(static_cast<cudaError_t>(error));
}

at::Tensor Aliases::replace(const at::Tensor& tensor, bool is_written) {
  at::Tensor alias = cpu_alias(tensor);
  if (tensor.defined() && tensor.is_cuda()) {
    device_ = tensor.device();
    pairs_.emplace_back(tensor, alias);
    (is_written ? writes_ : reads_).push_back(range_of(tensor));
  }
  return alias;
}

at::Tensor Aliases::restore(const at::Tensor& result, const char* name) const {
  if (!result.defined() || !result.device().is_cpu()) return result;
  for (const auto& [original, alias] : pairs_) {
    if (alias.unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) return original;
  }
  return on_device(result, device_, name);
}

void Aliases::write_back_resized(const char* name) {
  for (auto& [original, alias] : pairs_) {
    if (!alias.defined() || alias.sizes() == original.sizes()) continue;
    original.resize_(alias.sizes());
    if (alias.numel() == 0) continue;
    const Kernel kernel(name, {}, {range_of(original)});
    cpu_alias(original).copy_(alias);
  }
}

}  // namespace fakecuda_ops
