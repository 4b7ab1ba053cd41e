#include "csrc/sched/time/begin_step.h"

#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {

Step begin_step(Table& table, Nanos now, bool is_deadline) {
  Step step(table, now, is_deadline);
  // Limits and class floors read until when a lease was charged, which charge_users() moves on.
  settle_allowances(table, now);
  settle_floors(table, now);
  charge_users(table, now);
  return step;
}

}  // namespace gpushare::sched
