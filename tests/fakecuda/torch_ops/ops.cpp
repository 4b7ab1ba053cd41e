// Runs PyTorch's operators on the fake device: each aten operator with a CPU kernel gets a boxed
// kernel in the CUDA slot of the dispatch table, which hands the CPU kernel aliases of the same
// bytes. So a model on the fake device computes bit for bit what it computes on the CPU.
//
// The random numbers are the CPU generator's: torch.manual_seed() gives the same on both.
#include <cstring>
#include <set>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/copy_native.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "tests/fakecuda/torch_ops/aliases.h"

namespace fakecuda_ops {
namespace {

using c10::IValue;

// What PyTorch's own CUDA code does without a kernel: memory, copies, and what calls others.
bool is_kept(const std::string& name) {
  static const std::set<std::string> kept = {"aten::_copy_from",
                                             "aten::_efficientzerotensor",
                                             "aten::_fused_sdp_choice",
                                             "aten::_has_same_storage_numel",
                                             "aten::_local_scalar_dense",
                                             "aten::_pin_memory",
                                             "aten::_to_copy",
                                             "aten::copy_",
                                             "aten::empty",
                                             "aten::empty_strided",
                                             "aten::equal",
                                             "aten::is_pinned",
                                             "aten::lift",
                                             "aten::record_stream",
                                             "aten::resize_",
                                             "aten::set_"};
  return kept.contains(name);
}

// Operators whose result has a size that the host must know: the real kernels wait for the device.
bool waits_for_result(const c10::FunctionSchema& schema) {
  static const std::set<std::string> sized_by_values = {
      "aten::_unique",           "aten::_unique2",
      "aten::masked_select",     "aten::nonzero",
      "aten::repeat_interleave", "aten::unique_consecutive",
      "aten::unique_dim",        "aten::unique_dim_consecutive"};
  if (sized_by_values.contains(schema.name())) return true;
  for (const c10::Argument& result : schema.returns()) {
    const auto kind = result.type()->kind();
    if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return true;
  }
  return false;
}

void replace_argument(IValue& value, bool is_written, Aliases& aliases) {
  if (value.isTensor()) {
    value = aliases.replace(value.toTensor(), is_written);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(aliases.replace(tensor, is_written));
    }
    value = list;
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      if (tensor) tensor = aliases.replace(*tensor, is_written);
      list.push_back(tensor);
    }
    value = list;
  } else if (value.isDevice() && value.toDevice().is_cuda()) {
    aliases.set_device(value.toDevice());
    value = IValue(at::Device(at::kCPU));
  } else if (value.isGenerator()) {
    value = IValue();  // the CPU's default one
  }
}

void restore_result(IValue& value, const Aliases& aliases, const char* name) {
  if (value.isTensor()) {
    value = aliases.restore(value.toTensor(), name);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(aliases.restore(tensor, name));
    }
    value = list;
  }
}

void run_on_cpu(const c10::OperatorHandle& op,
                c10::DispatchKeySet /*keys*/,
                torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const char* name = schema.name().c_str();
  Aliases aliases;
  aliases.set_device(at::Device(at::kCUDA, c10::cuda::current_device()));
  const size_t num_arguments = schema.arguments().size();
  const size_t first = stack->size() - num_arguments;
  // The aliases are without owners: this keeps the tensors alive.
  const std::vector<IValue> originals(stack->begin() + static_cast<std::ptrdiff_t>(first),
                                      stack->end());
  for (size_t i = 0; i < num_arguments; ++i) {
    const c10::AliasInfo* info = schema.arguments()[i].alias_info();
    replace_argument((*stack)[first + i], info != nullptr && info->isWrite(), aliases);
  }
  {
    const Kernel kernel(name, aliases.reads(), aliases.writes());
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  }
  if (waits_for_result(schema)) {
    C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream()));
  }
  aliases.write_back_resized(name);
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    restore_result((*stack)[i], aliases, name);
  }
}

// Copies between host and device are PyTorch's own, cudaMemcpyAsync included. Within the device
// they may change type or strides, which needs a kernel.
// As torch's own kernel, which runs on the source's device.
void want_access(c10::DeviceIndex device, c10::DeviceIndex peer) {
  int can_access = 0;
  C10_CUDA_CHECK(cudaDeviceCanAccessPeer(&can_access, device, peer));
  if (can_access != 0) c10::cuda::CUDACachingAllocator::get()->enablePeerAccess(device, peer);
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (!self.is_cuda() || !source.is_cuda()) return at::native::copy_(self, source, non_blocking);
  if (self.device() != source.device()) {
    want_access(source.device().index(), self.device().index());
  }
  at::Tensor to = cpu_alias(self);
  const Kernel kernel("aten::copy_", {range_of(source)}, {range_of(self)});
  to.copy_(cpu_alias(source));
  return self;
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

bool can_run_on_cpu(const c10::OperatorHandle& op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return true;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

int install() {
  auto& dispatcher = c10::Dispatcher::singleton();
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  int num_installed = 0;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::") || is_kept(name.name)) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || returns_view(op->schema()) || !can_run_on_cpu(*op)) continue;
    std::string short_name = name.name.substr(std::strlen("aten::"));
    if (!name.overload_name.empty()) short_name += "." + name.overload_name;
    library->impl(short_name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
    ++num_installed;
  }
  library->impl("copy_", &copy);
  return num_installed;
}

}  // namespace
}  // namespace fakecuda_ops

// Once a process, after torch is loaded. Returns how many operators now run on the fake device.
extern "C" FAKECUDA_PUBLIC int fakecuda_install_ops() {
  static const int num_installed = fakecuda_ops::install();
  return num_installed;
}
