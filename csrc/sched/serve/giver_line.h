// Jobs that may be asked for room, the furthest next use first.
//
// Users of one class are thought to have their turns one after the other, each with his next job:
// so the furthest is the last job of the user who has the most of them. A job that is paused has no
// next use that is known, and comes first. Jobs are put in order only as far as somebody looks: of
// hundreds, a few give what is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

struct Giver {
  const Job* job = nullptr;
  OrderKey key;     // its place in line
  Bytes droppable;  // what it gives without a copy
};

class GiverLine {
 public:
  // pre: at() was not called yet.
  void add(const Giver& giver);

  [[nodiscard]] bool empty() const { return givers_.empty(); }
  // The giver in that place, 0 being the furthest; null: there are fewer.
  [[nodiscard]] const Giver* at(std::size_t place);
  // The bytes that all givers together give without a copy.
  [[nodiscard]] Bytes droppable() const { return droppable_; }
  // Whether one of the givers, or its user, has an elastic limit.
  [[nodiscard]] bool is_any_elastic() const { return is_any_elastic_; }
  // Whether all givers are used before the other job, which is none of them.
  [[nodiscard]] bool is_before(const Giver& other);

  // The givers as they were added, in no order of use.
  [[nodiscard]] auto begin() const { return givers_.begin(); }
  [[nodiscard]] auto end() const { return givers_.end(); }

 private:
  // The givers of one user and class, as a heap: the last in line is on top.
  using Group = std::vector<const Giver*>;
  // Whether its jobs are paused, their class, their user.
  using GroupName = std::tuple<bool, wire::Priority, std::uint32_t>;

  void make_groups();

  std::vector<Giver> givers_;
  std::map<GroupName, Group> groups_;  // of givers that are not in ordered_ yet
  std::vector<const Giver*> ordered_;
  Bytes droppable_;
  bool is_any_elastic_ = false;
};

}  // namespace gpushare::sched
