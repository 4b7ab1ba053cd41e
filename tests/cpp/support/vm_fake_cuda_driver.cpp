#include "tests/cpp/support/vm_fake_cuda_driver.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "csrc/base/check.h"

#include "tests/cpp/support/vm_fake_cuda_calls.h"

namespace gpushare::testing {
namespace cuda = vm::cuda;

namespace {

bool overlap(const std::byte* a, std::size_t size_a, const std::byte* b, std::size_t size_b) {
  return a < b + size_b && b < a + size_a;
}

}  // namespace

FakeCudaDriver::FakeCudaDriver(Bytes device_size, bool has_host_memory)
    : memory_(device_size),
      abilities_({{cuda::kHasVirtualMemory, 1},
                  {cuda::kHasFileDescriptors, 1},
                  {cuda::kHasHostNodeMemory, has_host_memory ? 1 : 0}}) {
  FakeCudaCalls::install(this);
}

FakeCudaDriver::~FakeCudaDriver() { FakeCudaCalls::install(nullptr); }

cuda::Calls FakeCudaDriver::calls() { return FakeCudaCalls::table(); }

cuda::Code FakeCudaDriver::enter(const char* function) {
  const int nth = ++counts_[function];
  ++num_calls_;
  const Failing any = failing_[""];
  const Failing one = failing_[function];
  const bool must_fail =
      (num_calls_ >= any.first && num_calls_ <= any.last) || (nth >= one.first && nth <= one.last);
  if (!must_fail) return cuda::kSuccess;
  return std::string_view(function) == "create" ? cuda::kOutOfMemory : cuda::kUnknown;
}

cuda::Code FakeCudaDriver::enter_in_context(const char* function) {
  GS_CHECK(FakeCudaCalls::has_context() && num_contexts_ > 0, "{} without a context", function);
  GS_CHECK(!is_capturing_ || FakeCudaCalls::is_relaxed(), "{} breaks a capture", function);
  return enter(function);
}

void FakeCudaDriver::launch(std::byte* address, Bytes size, std::byte value) {
  MutexLock lock(mu_);
  GS_CHECK(memory_.is_accessible(address, size.to_size()), "a kernel faults");
  kernels_.push_back({address, size.to_size(), value});
}

cuda::Code FakeCudaDriver::queue_copy(cuda::Stream stream, const Copy& copy) {
  const auto found = streams_.find(stream);
  GS_CHECK(found != streams_.end(), "no such stream");
  GS_CHECK(memory_.is_accessible(copy.device, copy.size), "a copy faults");
  check_idle(copy.device, copy.size);
  check_pinned_as_one(copy.to == copy.device ? copy.from : copy.to, copy.size);
  found->second.push_back(copy);
  return cuda::kSuccess;
}

void FakeCudaDriver::finish(Queue& queue) {
  for (const Copy& copy : queue)
    std::memcpy(copy.to, copy.from, copy.size);
  queue.clear();
}

void FakeCudaDriver::finish_all() {
  for (const Kernel& kernel : kernels_)
    std::memset(kernel.address, std::to_integer<int>(kernel.value), kernel.size);
  kernels_.clear();
  for (auto& [stream, queue] : streams_)
    finish(queue);
}

void FakeCudaDriver::check_idle(const std::byte* address, std::size_t size) const {
  for (const Kernel& kernel : kernels_) {
    GS_CHECK(!overlap(address, size, kernel.address, kernel.size), "a kernel has not run yet");
  }
  for (const auto& [stream, queue] : streams_) {
    for (const Copy& copy : queue) {
      GS_CHECK(!overlap(address, size, copy.device, copy.size), "a copy has not ended yet");
    }
  }
}

void FakeCudaDriver::check_pinned_as_one(const std::byte* host, std::size_t size) const {
  for (const auto& [address, length] : registered_) {
    const auto* const pinned = static_cast<const std::byte*>(address);
    const bool is_inside = host >= pinned && host + size <= pinned + length;
    GS_CHECK(is_inside || !overlap(host, size, pinned, length), "a copy over a pinned range's end");
  }
}

void FakeCudaDriver::begin_capture() {
  MutexLock lock(mu_);
  is_capturing_ = true;
}

void FakeCudaDriver::end_capture() {
  MutexLock lock(mu_);
  is_capturing_ = false;
}

void FakeCudaDriver::fail_at(int nth, int more) {
  MutexLock lock(mu_);
  failing_[""] = {num_calls_ + nth, num_calls_ + nth + more};
}

void FakeCudaDriver::fail(const std::string& function, int nth, int more) {
  MutexLock lock(mu_);
  failing_[function] = {counts_[function] + nth, counts_[function] + nth + more};
}

void FakeCudaDriver::fail_never() {
  MutexLock lock(mu_);
  failing_.clear();
}

void FakeCudaDriver::set_name(const std::string& name) {
  MutexLock lock(mu_);
  name_ = name;
}

void FakeCudaDriver::set_ability(int attribute, int value) {
  MutexLock lock(mu_);
  abilities_[attribute] = value;
}

int FakeCudaDriver::num_calls() const {
  MutexLock lock(mu_);
  return num_calls_;
}

int FakeCudaDriver::num_calls(const std::string& function) const {
  MutexLock lock(mu_);
  const auto found = counts_.find(function);
  return found == counts_.end() ? 0 : found->second;
}

int FakeCudaDriver::num_contexts() const {
  MutexLock lock(mu_);
  return num_contexts_;
}

std::size_t FakeCudaDriver::num_streams() const {
  MutexLock lock(mu_);
  return streams_.size();
}

Bytes FakeCudaDriver::pinned() const {
  MutexLock lock(mu_);
  Bytes sum;
  for (const auto& [address, size] : registered_)
    sum += Bytes{static_cast<std::int64_t>(size)};
  return sum;
}

Bytes FakeCudaDriver::used() const {
  MutexLock lock(mu_);
  return memory_.used();
}

Bytes FakeCudaDriver::host_used() const {
  MutexLock lock(mu_);
  return memory_.used(FakeCudaMemory::Side::kHost);
}

bool FakeCudaDriver::is_accessible(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  return memory_.is_accessible(address, size.to_size());
}

cuda::AllocationProp FakeCudaDriver::last_prop() const {
  MutexLock lock(mu_);
  return last_prop_;
}

std::string FakeCudaDriver::leaks() const {
  MutexLock lock(mu_);
  std::string text;
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += fmt::format("{} {} ", count, what);
  };
  add(memory_.num_handles(), "handles");
  add(memory_.num_mapped(), "mappings");
  add(memory_.num_reserved(), "reservations");
  add(streams_.size(), "streams");
  add(registered_.size(), "pinned ranges");
  add(static_cast<std::size_t>(num_contexts_), "contexts");
  return text;
}

}  // namespace gpushare::testing
