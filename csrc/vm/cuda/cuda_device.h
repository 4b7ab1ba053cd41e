// One CUDA device: what it is, and its primary context, which torch uses too.
//
// The context is made at first use, never by open(): it costs some hundred MiB of the device and a
// second, and a process that only imports gpushare must not pay that.
//
// threads: any. A forked child can use none of it, and nothing is called once exit() has begun.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda/cuda_driver.h"

namespace gpushare::vm {

class CudaDevice {
 public:
  struct Memory {
    Bytes free;
    Bytes total;
  };

  // `driver` must outlive it. errors: kInvalidArgument: no such device; kFailedPrecondition: it
  // cannot do what CudaVmm needs; kIo.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDriver& driver, int ordinal);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] const CudaDriver& driver() const { return driver_; }
  [[nodiscard]] const cuda::Calls& calls() const { return driver_.calls(); }
  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // "GPU-12345678-1234-1234-1234-123456789abc", as nvidia-smi has it.
  [[nodiscard]] const std::string& uuid() const { return uuid_; }
  // Without a context.
  [[nodiscard]] Bytes total() const { return total_; }
  // The properties that chunks of its memory are created with: they can be exported as file
  // descriptors.
  [[nodiscard]] cuda::AllocationProp chunk_prop() const;
  // Whether it can use memory of the host that chunks are made of with host_prop(), at addresses of
  // its own. Where the driver does not know, it cannot.
  [[nodiscard]] bool has_host_memory() const { return host_node_ >= 0; }
  // On the NUMA node next to it. pre: has_host_memory().
  [[nodiscard]] cuda::AllocationProp host_prop() const;
  // Free and total memory of the device, for all processes together. Makes the context.
  Result<Memory> memory_info();
  // Waits until it has done all that this process's threads have queued. Within a CudaScope.
  [[nodiscard]] Status synchronize(const std::string& what);

  // False in a forked child and once exit() has begun.
  [[nodiscard]] bool is_usable() const;

 private:
  friend class CudaScope;
  CudaDevice(const CudaDriver& driver, int ordinal, cuda::Device device);
  Status identify();
  Status check_abilities() const;
  void look_for_host_memory();
  Result<cuda::Context> context() GS_EXCLUDES(mu_);

  const CudaDriver& driver_;
  const int ordinal_;
  const cuda::Device device_;
  const pid_t owner_;
  std::string name_;
  std::string uuid_;
  Bytes total_;
  int host_node_ = -1;
  Mutex mu_;
  // Null: not made yet. release under mu_; pairs with the acquire in context().
  std::atomic<cuda::Context> context_{nullptr};
};

// While it lives, the device's context is the calling thread's current one, and other threads'
// stream captures are not disturbed by what it calls. Both are as before afterwards: the thread is
// the user's, and may use another device.
//
// The driver is asked each time what is current, instead of our own note per thread, since the user
// may have changed it meanwhile; it is a read of the thread's own memory to the driver too.
class CudaScope {
 public:
  explicit CudaScope(CudaDevice& device);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

  // Not ok: nothing may be called. kFailedPrecondition: a forked child; kOutOfMemory, kIo.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Status enter();

  CudaDevice& device_;
  cuda::Context before_ = nullptr;
  int capture_mode_ = cuda::kRelaxed;
  bool has_set_context_ = false;
  bool has_set_mode_ = false;
  Status status_;
};

}  // namespace gpushare::vm
