// Decides how many jobs a job would have before it.
//
// The holder of the lease counts as if it queued again now, because that is whom the job competes
// with at the holder's next boundary. A paused holder does not count: it queues again only when
// somebody resumes it. Users of one class have their turns alternately, so of each other user at
// most as many jobs count as the job's own user has turns before it.
#include "csrc/sched/report/imagined_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/time/deadlines.h"
#include "csrc/sched/time/shares.h"

namespace gpushare::sched {

// The place of the job in another class depends on who is in it. So it is put at the end of its
// equals there.
OrderKey ImaginedLine::key(const Job& other) const {
  OrderKey key = order_key(table.device, other);
  if (std::isinf(other.served.virtual_time)) key.user_time = other.served.virtual_time;
  return key;
}

ImaginedLine ImaginedLine::with(Job changed) const {
  const std::vector<JobId> shed = would_be_shed(table, changed);
  ImaginedLine line{table, std::move(changed), holder, waiting};
  const auto settle = [&](Job& other) {
    other.place.sheds_deadline = std::ranges::find(shed, other.id) != shed.end();
  };
  settle(line.job);
  if (line.holder.has_value()) settle(*line.holder);
  std::ranges::for_each(line.waiting, settle);
  return line;
}

// Gives the same order as JobTable::order.
std::size_t ImaginedLine::num_before(const Job& as) const {
  const OrderKey last = key(as);
  std::size_t num = holder.has_value() && key(*holder) < last ? 1 : 0;
  std::size_t turn = 0;
  struct Rivals {
    std::size_t num = 0;
    bool is_first = false;
  };
  std::map<std::uint32_t, Rivals> others;
  for (const Job& other : waiting) {
    const OrderKey first = key(other);
    if (first.priority == last.priority && first.user != last.user) {
      ++others[first.user].num;
      others[first.user].is_first = first < last;
    } else if (first < last) {
      ++(first.priority == last.priority ? turn : num);
    }
  }
  for (const auto& [user, rivals] : others)
    num += std::min(rivals.num, turn + (rivals.is_first ? 1 : 0));
  return num + turn;
}

std::string ImaginedLine::compare(const Job& first, const Job& second) const {
  const OrderKey a = key(first);
  const OrderKey b = key(second);
  if (a.priority != b.priority || a.user == b.user) return policy().why(first, second);
  const auto text = [&](const OrderKey& of, const Job& other) {
    const Users& users = table.options.users;
    return fmt::format("{} {:.3f} s (weight {:g}; job {})", users.label(other.who.uid),
                       of.user_time, users.of(other.who.uid).weight, label(other));
  };
  return fmt::format("{}: served over weight, of users: {}, {}", policy().name(), text(a, first),
                     text(b, second));
}

ImaginedLine imagined_line(const Table& table, const Lane& lane, const Job& job, Nanos now) {
  ImaginedLine line{table, job, {}, {}};
  for (const OrderKey& key : lane.waiting) {
    if (key.id != job.id) line.waiting.push_back(table.at(key.id));
  }
  if (!lane.lease.has_value()) return line;
  const Job after = table.at(lane.lease->job()).copy_requeued(now - lane.lease->since(), now);
  if (after.id == job.id) {
    line.job = after;
  } else if (!after.settings.is_paused()) {
    line.holder = after;
  }
  return line;
}

}  // namespace gpushare::sched
