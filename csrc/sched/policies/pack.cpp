// Jobs side by side, in the order of another policy: `pack` in that of fair, `srtf+pack` in that of
// srtf, and so on. Only the order stands here. Which jobs run at the same time does not follow from
// an order key, so it is decided where leases are granted (side_by_side.h). How many of them do so
// is found by trial (packing.h), and carried out in running_set.h and side_by_side.h.
#include <memory>
#include <string>
#include <utility>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

// The jobs of all lanes stand in one line, so keys of jobs in different lanes are compared. The
// other policy's rules are left out. They cut turns short for jobs that wait, and here these jobs
// may run beside the holder.
Sharing side_by_side(Sharing sharing) {
  sharing.in_one_line = true;
  sharing.cuts_turns = false;
  return sharing;
}

class Pack final : public Policy {
 public:
  Pack(const char* name, std::unique_ptr<const Policy> order)
      : Policy({&packing()}, side_by_side(order->sharing())),
        name_(name),
        order_(std::move(order)) {}
  [[nodiscard]] const char* name() const override { return name_; }
  [[nodiscard]] OrderKey key(const Standing& job) const override { return order_->key(job); }

 private:
  [[nodiscard]] std::string compare(const Job& first, const Job& second) const override {
    return compare_by(*order_, first, second);
  }

  const char* name_;
  std::unique_ptr<const Policy> order_;
};

}  // namespace

std::unique_ptr<const Policy> make_pack() { return std::make_unique<Pack>("pack", make_fair()); }

std::unique_ptr<const Policy> make_srtf_pack() {
  return std::make_unique<Pack>("srtf+pack", make_srtf());
}

std::unique_ptr<const Policy> make_deadline_pack() {
  return std::make_unique<Pack>("deadline+pack", make_deadline());
}

}  // namespace gpushare::sched
