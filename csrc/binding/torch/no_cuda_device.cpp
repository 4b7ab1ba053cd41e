// Stands in place of cuda_device.cpp where torch was built without CUDA. Asking for a CUDA device
// fails and says how to get one; the calls around captures and sharing do nothing.
#include "csrc/binding/torch/torch_device.h"

namespace gpushare::binding {
namespace {

Status no_cuda() {
  return {StatusCode::kFailedPrecondition,
          "gpushare was built for a torch without CUDA: install a CUDA build of torch, then in "
          "gpushare's sources pip install --force-reinstall --no-deps ./"};
}

}  // namespace

Result<std::unique_ptr<TorchDevice>> make_cuda_device(int /*index*/,
                                                      const CudaOptions& /*options*/) {
  return fail(no_cuda());
}
Result<CudaDeviceInfo> cuda_device_info(int /*index*/) { return fail(no_cuda()); }
void note_capture(bool /*is_beginning*/) {}
Status begin_sharing() { return {}; }
void end_sharing() {}

}  // namespace gpushare::binding
