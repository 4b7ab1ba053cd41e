// The settings that may be changed of a job while it runs. A field without a value leaves that
// setting as it is.
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/wire/job_settings.h"
#include "csrc/wire/priority.h"

namespace gpushare::wire {

struct Changes {
  std::optional<Priority> priority = {};
  std::optional<double> weight = {};
  std::optional<Bytes> memory_limit = {};  // 0: none
  std::optional<Nanos> deadline = {};      // 0: none
  std::optional<double> share_limit = {};  // of the time; 0: none
  std::optional<bool> is_elastic = {};     // its limits, as of a Register
  std::optional<bool> is_paused = {};      // it gets no lease
  bool operator==(const Changes&) const = default;

  // Nothing is to be changed.
  [[nodiscard]] bool is_empty() const { return *this == Changes{}; }

  // `more` came later.
  void add(const Changes& more) {
    if (more.priority) priority = more.priority;
    if (more.weight) weight = more.weight;
    if (more.memory_limit) memory_limit = more.memory_limit;
    if (more.deadline) deadline = more.deadline;
    if (more.share_limit) share_limit = more.share_limit;
    if (more.is_elastic) is_elastic = more.is_elastic;
    if (more.is_paused) is_paused = more.is_paused;
  }

  // `settings` has these fields, as a Register has. It has no is_paused: a Register names the user
  // who paused the job instead.
  void apply_to(JobSettings& settings) const {
    settings.priority = priority.value_or(settings.priority);
    settings.weight = weight.value_or(settings.weight);
    settings.memory_limit = memory_limit.value_or(settings.memory_limit);
    settings.deadline = deadline.value_or(settings.deadline);
    settings.share_limit = share_limit.value_or(settings.share_limit);
    settings.is_elastic = is_elastic.value_or(settings.is_elastic);
  }
};

}  // namespace gpushare::wire
