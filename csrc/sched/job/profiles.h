// What the coordinator remembers of jobs that have ended, for the next one with the same model.
//
// Which problem it solves: how long an iteration takes, how many there are, and how much memory
// they need, is learned while a job runs; a job that runs again would be unknown again for as long.
// So a job that registers says a fingerprint of its model (wire::Register), and what was measured
// of it is kept here when it ends.
//
// A profile is a hint. What is measured replaces it within a few iterations (measured.cpp), and no
// byte of room follows from it. It is found under its user alone: a user's jobs neither see nor
// change what others' left, and where the table is full the user with most profiles loses his
// oldest one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"
#include "csrc/sched/job/lengths.h"

namespace gpushare::sched {

struct ProfileKey {
  std::uint32_t uid = 0;
  std::uint64_t fingerprint = 0;  // 0: none
  auto operator<=>(const ProfileKey&) const = default;
};

struct Profile {
  Nanos iteration;               // how long one takes
  Nanos tail;                    // one in twenty takes longer; 0: unknown
  Nanos gap;                     // how long it was away between two leases; 0: unknown
  Nanos stall;                   // what a switch to it costs
  Sizes sizes;                   // what it keeps, and needs in an iteration; Sizes{}: unknown
  std::uint64_t iterations = 0;  // that all this was seen in
  Lengths lengths = {};          // how many iterations the last jobs ran
  bool operator==(const Profile&) const = default;
};

class Profiles {
 public:
  static constexpr std::size_t kMost = 1000;
  using Row = std::pair<ProfileKey, Profile>;

  // Null: nothing is remembered.
  [[nodiscard]] const Profile* find(const ProfileKey& key) const;
  // A job has ended. With fewer than kIterationsToLearn iterations it says nothing; with a few, it
  // changes what was known before a little; with many, it replaces it. Numbers that cannot be are
  // cut.
  void note(const ProfileKey& key, const Profile& measured);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  // The profiles in the order in which jobs left them. Noted again in this order, they give the
  // same table.
  [[nodiscard]] std::vector<Row> oldest_first() const;
  // Grows with each change.
  [[nodiscard]] std::uint64_t num_changes() const { return num_changes_; }

 private:
  struct Entry {
    Profile profile;
    std::uint64_t noted = 0;  // num_changes_ then
  };
  void make_place();

  std::map<ProfileKey, Entry> entries_;  // Invariant: at most kMost.
  std::uint64_t num_changes_ = 0;
};

}  // namespace gpushare::sched
