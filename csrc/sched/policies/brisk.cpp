// As `fair`, but nobody who waits is kept waiting for longer than a second by a holder that could
// end its turn (time/brisk_rule.cpp).
#include <memory>

#include "csrc/sched/policies/policies.h"

namespace gpushare::sched {
namespace {

class Brisk final : public LeastServed {
 public:
  Brisk() : LeastServed({&being_brisk()}) {}
  [[nodiscard]] const char* name() const override { return "brisk"; }
};

}  // namespace

std::unique_ptr<const Policy> make_brisk() { return std::make_unique<Brisk>(); }

}  // namespace gpushare::sched
