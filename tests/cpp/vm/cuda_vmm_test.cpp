#include "csrc/vm/cuda_vmm.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/contract/vmm_contract.h"
#include "tests/cpp/support/readable.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

constexpr std::size_t kChunk = vm::kChunkBytes.to_size();

struct FakeCudaMaker {
  static constexpr bool kZeroes = false;
  static constexpr bool is_there() { return true; }
  vm::Vmm& vmm() { return world.vmm; }
  CudaWorld world;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnAFakeDriver, VmmContract, FakeCudaMaker);

// The machine's own driver, or whatever libcuda.so.1 is in the loader's path.
struct RealCudaMaker {
  static constexpr bool kZeroes = false;
  RealCudaMaker() {
    Result<std::unique_ptr<vm::CudaDriver>> found = vm::CudaDriver::load();
    if (!found) return;
    driver = std::move(*found);
    device = open_device(*driver);
    cuda = std::make_unique<vm::CudaVmm>(*device);
  }
  [[nodiscard]] bool is_there() const { return cuda != nullptr; }
  vm::Vmm& vmm() const { return *cuda; }
  std::unique_ptr<vm::CudaDriver> driver;
  std::unique_ptr<vm::CudaDevice> device;
  std::unique_ptr<vm::CudaVmm> cuda;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnThisMachine, VmmContract, RealCudaMaker);

}  // namespace
}  // namespace gpushare::testing
