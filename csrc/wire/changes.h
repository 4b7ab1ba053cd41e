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
    match(more, *this, [](const auto& later, auto& mine) {
      if (later.has_value()) mine = later;
    });
    if (more.is_paused) is_paused = more.is_paused;
  }

  // There is no is_paused in `settings`: a Register names the user who paused the job instead.
  void apply_to(JobSettings& settings) const {
    match(*this, settings,
          [](const auto& change, auto& setting) { setting = change.value_or(setting); });
  }

 private:
  // Calls visit(change, setting) for each setting that can be changed. NEW_SETTING: a line here.
  template <typename Settings, typename Visit>
  static void match(const Changes& changes, Settings& settings, Visit visit) {
    visit(changes.priority, settings.priority);
    visit(changes.weight, settings.weight);
    visit(changes.memory_limit, settings.memory_limit);
    visit(changes.deadline, settings.deadline);
    visit(changes.share_limit, settings.share_limit);
    visit(changes.is_elastic, settings.is_elastic);
  }
};

}  // namespace gpushare::wire
