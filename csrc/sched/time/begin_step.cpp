// The order of the charges matters: limits on time and class floors read up to when each lease was
// charged, and charge_users() moves that on. So it comes last.
#include "csrc/sched/time/begin_step.h"

#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {

Step begin_step(Table& table, Nanos now, bool is_deadline) {
  Step step(table, now, is_deadline);
  settle_allowances(table, now);
  settle_floors(table, now);
  charge_users(table, now);
  return step;
}

}  // namespace gpushare::sched
