// torch decides when the range begins whether anybody is to be told.
#include "csrc/binding/python/profiler_range.h"

#include <ATen/record_function.h>

namespace gpushare::binding {

struct ProfilerRange::Impl {
  at::RecordFunction function{at::RecordScope::USER_SCOPE};
};

ProfilerRange::ProfilerRange(const char* name) : impl_(std::make_unique<Impl>()) {
  if (impl_->function.isActive()) impl_->function.before(name);
}

ProfilerRange::~ProfilerRange() = default;

}  // namespace gpushare::binding
