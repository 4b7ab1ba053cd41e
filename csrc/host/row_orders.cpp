// The order of the two loops is the whole decision here (row_orders.h says why).
#include "csrc/host/row_orders.h"

namespace gpushare::host {

void carry_out(const std::vector<RankOrder>& orders, RowMachines& machines) {
  for (const RankOrder& order : orders)
    if (!order.is_free) machines.set_stop_at(order.job, order.stop_at);
  for (const RankOrder& order : orders) {
    std::optional<sched::GangRow> row;
    // A row that ends at 0 is closed: no count of steps is below that.
    if (!order.is_free) row = {order.is_open ? order.stop_at : 0, order.why};
    machines.set_row(order.job, std::move(row));
  }
}

}  // namespace gpushare::host
