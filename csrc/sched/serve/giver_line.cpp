// The furthest next use comes first, because its bytes are missed last (Belady's rule, with the
// policy's order as the forecast).
//
// Paused jobs give first, since nobody knows their next use, and then jobs of the lowest class.
// Users of one class are thought to have their turns by turns, so the user with the most jobs left
// has the furthest next use. His last job is taken, and then the rule is applied again. Groups are
// heaps, so that only the givers that are looked at are put in order.
#include "csrc/sched/serve/giver_line.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::sched {
namespace {

bool is_nearer(const Giver* a, const Giver* b) { return a->key < b->key; }

}  // namespace

void GiverLine::add(const Giver& giver) {
  GS_DCHECK(ordered_.empty(), "job {} comes late", giver.job->id.value);
  givers_.push_back(giver);
  droppable_ += giver.droppable;
  is_any_elastic_ =
      is_any_elastic_ || giver.job->settings.is_elastic || giver.job->settings.is_user_elastic;
}

// Put off until somebody looks at the line: most plans are made of what needs no order.
void GiverLine::make_groups() {
  for (const Giver& giver : givers_)
    groups_[{giver.job->settings.is_paused(), giver.key.priority, giver.key.user}].push_back(
        &giver);
  for (auto& [name, group] : groups_)
    std::make_heap(group.begin(), group.end(), is_nearer);
}

// One giver after the other is taken from the group whose last job is used last.
const Giver* GiverLine::at(std::size_t place) {
  if (place >= givers_.size()) return nullptr;
  if (ordered_.empty()) make_groups();
  while (ordered_.size() <= place) {
    const auto is_nearer_group = [](const auto& a, const auto& b) {
      const auto rank = [](const auto& entry) {
        const auto& [is_paused, priority, user] = entry.first;
        return std::tuple(is_paused, priority, entry.second.size());
      };
      if (rank(a) != rank(b)) return rank(a) < rank(b);
      return is_nearer(a.second.front(), b.second.front());
    };
    const auto last = std::max_element(groups_.begin(), groups_.end(), is_nearer_group);
    Group& group = last->second;
    std::pop_heap(group.begin(), group.end(), is_nearer);
    ordered_.push_back(group.back());
    group.pop_back();
    if (group.empty()) groups_.erase(last);
  }
  return ordered_[place];
}

// The furthest of the givers is compared with the other job, by the turns that are thought to pass
// before each of the two.
bool GiverLine::is_before(const Giver& other) {
  if (givers_.empty()) return true;
  const Giver& last = *at(0);
  if (last.job->settings.is_paused()) return false;
  // The number of turns that the user of a job has before it.
  const auto turn = [this](const Giver& of) {
    return std::ranges::count_if(givers_, [&](const Giver& giver) {
      const bool is_his = giver.key.priority == of.key.priority && giver.key.user == of.key.user;
      return is_his && !giver.job->settings.is_paused() && giver.key < of.key;
    });
  };
  const auto use = [&](const Giver& of) { return std::tuple(of.key.priority, turn(of), of.key); };
  return use(last) < use(other);
}

}  // namespace gpushare::sched
