// A place in mid-iteration holds activations, which are many times what lives on. So a boundary is
// refused by comparison with the last one, and never the first. A model that grows is refused a few
// times at most: then the larger amount becomes the one to compare with.
#include "csrc/watch/live_limit.h"

namespace gpushare::watch {
namespace {

// A boundary with this many times the live bytes of the last one stands in mid-iteration.
constexpr std::int64_t kFactor = 3;
// Live bytes that never count as too many.
constexpr Bytes kSlack = mib(64);
// So many boundaries in a row may be refused; then the larger amount is the new normal.
constexpr int kMaxRefusals = 3;

}  // namespace

bool LiveLimit::refuses() {
  if (!live_bytes_) return false;
  const Bytes live = live_bytes_();
  const bool is_too_much = last_ > Bytes{} && live > last_ * kFactor + kSlack;
  if (is_too_much && num_refusals_ < kMaxRefusals) {
    ++num_refusals_;
    return true;
  }
  num_refusals_ = 0;
  last_ = live;
  return false;
}

}  // namespace gpushare::watch
