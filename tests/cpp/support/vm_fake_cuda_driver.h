// A CUDA driver in this process, of just the functions that gpushare calls.
//
// What is asynchronous on a GPU is so here: a kernel's writes and a copy's bytes arrive when
// somebody synchronises, and what is unmapped, released or copied before aborts. It counts calls
// and fails those it is told to. One at a time exists: the driver's functions carry no object.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda/cuda_types.h"

#include "tests/cpp/support/vm_fake_cuda_memory.h"

namespace gpushare::testing {

class FakeCudaDriver {
 public:
  // With or without the ability to use memory of the host as its own.
  explicit FakeCudaDriver(Bytes device_size = mib(64), bool has_host_memory = false);
  ~FakeCudaDriver();
  FakeCudaDriver(const FakeCudaDriver&) = delete;
  FakeCudaDriver& operator=(const FakeCudaDriver&) = delete;

  [[nodiscard]] static vm::cuda::Calls calls();

  // A kernel that fills the range once it runs. pre: the range is accessible.
  void launch(std::byte* address, Bytes size, std::byte value);
  // From now on until end_capture() some thread captures a stream: calls disturb it that are not
  // made in relaxed mode.
  void begin_capture();
  void end_capture();

  // The `nth` of the following calls (1 is the next) fails, and so do the `more` after it: creating
  // memory with CUDA_ERROR_OUT_OF_MEMORY, others with CUDA_ERROR_UNKNOWN.
  void fail_at(int nth, int more = 0);
  // The same of one function, by its field's name in cuda::Calls.
  void fail(const std::string& function, int nth = 1, int more = 0);
  void fail_never();
  void set_name(const std::string& name);
  void set_ability(int attribute, int value);

  [[nodiscard]] int num_calls() const;
  [[nodiscard]] int num_calls(const std::string& function) const;
  [[nodiscard]] int num_contexts() const;  // retained
  [[nodiscard]] std::size_t num_streams() const;
  [[nodiscard]] Bytes pinned() const;
  [[nodiscard]] Bytes used() const;
  [[nodiscard]] Bytes host_used() const;  // made by the driver
  [[nodiscard]] bool is_accessible(const std::byte* address, Bytes size) const;
  // "" if nothing is held, or what.
  [[nodiscard]] std::string leaks() const;
  // Of the last chunk made.
  [[nodiscard]] vm::cuda::AllocationProp last_prop() const;

 private:
  friend struct FakeCudaCalls;
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t size;
    const std::byte* device;  // whichever of the two
  };
  struct Kernel {
    std::byte* address;
    std::size_t size;
    std::byte value;
  };
  using Queue = std::vector<Copy>;
  struct Failing {
    int first = 0;
    int last = 0;
  };

  // Counts the call; not kSuccess: it must fail.
  vm::cuda::Code enter(const char* function) GS_REQUIRES(mu_);
  // The same for what needs a context and disturbs a capture.
  vm::cuda::Code enter_in_context(const char* function) GS_REQUIRES(mu_);
  vm::cuda::Code queue_copy(vm::cuda::Stream stream, const Copy& copy) GS_REQUIRES(mu_);
  void finish(Queue& queue) GS_REQUIRES(mu_);
  void finish_all() GS_REQUIRES(mu_);
  void check_idle(const std::byte* address, std::size_t size) const GS_REQUIRES(mu_);
  void check_pinned_as_one(const std::byte* host, std::size_t size) const GS_REQUIRES(mu_);

  mutable Mutex mu_;
  FakeCudaMemory memory_ GS_GUARDED_BY(mu_);
  std::map<vm::cuda::Stream, Queue> streams_ GS_GUARDED_BY(mu_);
  std::vector<Kernel> kernels_ GS_GUARDED_BY(mu_);
  std::map<const void*, std::size_t> registered_ GS_GUARDED_BY(mu_);
  std::map<int, int> abilities_ GS_GUARDED_BY(mu_);
  std::string name_ GS_GUARDED_BY(mu_) = "Fake H100";
  std::map<std::string, int> counts_ GS_GUARDED_BY(mu_);
  std::map<std::string, Failing> failing_ GS_GUARDED_BY(mu_);  // "" is any function
  vm::cuda::AllocationProp last_prop_ GS_GUARDED_BY(mu_) = {};
  int num_calls_ GS_GUARDED_BY(mu_) = 0, num_contexts_ GS_GUARDED_BY(mu_) = 0;
  std::uintptr_t last_stream_ GS_GUARDED_BY(mu_) = 0;
  bool is_capturing_ GS_GUARDED_BY(mu_) = false;
};

}  // namespace gpushare::testing
