// What a job, its user or a person may set: as registered, or changed since (events/change.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_settings.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

// Those of wire::JobSettings were checked by validate.h. The rest nobody registers.
struct Settings : wire::JobSettings {
  Bytes user_limit;  // of all jobs of its user; 0: none (user_room.h)
  bool is_user_elastic = false;
  wire::Changes changes;                   // since it registered first: it may not know all of them
  std::optional<std::uint32_t> paused_by;  // the user who did: it gets no lease
  Nanos paused_at;

  [[nodiscard]] bool is_guaranteed() const { return priority == wire::Priority::kGuaranteed; }
  [[nodiscard]] bool is_paused() const { return paused_by.has_value(); }
  // The bytes that its memory may not exceed, even on an empty device. 0: no limit.
  [[nodiscard]] Bytes hard_limit() const { return is_elastic ? Bytes{0} : memory_limit; }
  // The bytes that all jobs of its user together may not exceed, even on an empty device. 0: no
  // limit.
  [[nodiscard]] Bytes hard_user_limit() const { return is_user_elastic ? Bytes{0} : user_limit; }
  // The most that it may hold by itself; 0: no limit.
  [[nodiscard]] Bytes most_memory() const {
    const Bytes own = hard_limit();
    const Bytes of_user = hard_user_limit();
    return own == Bytes{0} || of_user == Bytes{0} ? own + of_user : std::min(own, of_user);
  }
};

}  // namespace gpushare::sched
