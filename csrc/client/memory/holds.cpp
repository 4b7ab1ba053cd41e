// Counting holds. The map has an entry only for a thread that has a hold, so any entry will do when
// a thread drops a hold that another one added.
#include "csrc/client/memory/holds.h"

namespace gpushare::client {

void Holds::add(Thread thread) {
  ++num_;
  ++by_thread_[thread];
}

bool Holds::drop(Thread thread) {
  if (num_ == 0) return false;
  auto holder = by_thread_.find(thread);
  if (holder == by_thread_.end()) holder = by_thread_.begin();
  --num_;
  if (--holder->second == 0) by_thread_.erase(holder);
  return true;
}

int Holds::num_of(Thread thread) const {
  const auto holder = by_thread_.find(thread);
  return holder == by_thread_.end() ? 0 : holder->second;
}

}  // namespace gpushare::client
