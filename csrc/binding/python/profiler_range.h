// A range in the profiles that torch.profiler makes, as torch.profiler.record_function() gives one.
// While nobody profiles, nothing is recorded. For waits, since it allocates memory in any case.
#pragma once

#include <memory>

namespace gpushare::binding {

class ProfilerRange {
 public:
  // Lasts until the destructor. `name` must outlive it.
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  struct Impl;  // torch's headers are slow to compile
  const std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::binding
