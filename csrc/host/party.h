// Decides who goes first on the devices of a host: gangs, and the single jobs of each device.
//
// Which problem it solves: the machine of a device orders its own jobs, but a gang has devices of
// several machines. So gangs are put in order here, by the policy of the devices, and the single
// jobs of a device count as one more that wants it: a party.
//
// A policy sees a party as it sees a job: as a Standing. That of a gang is made of those of its
// ranks. That of single jobs is the standing of the first of them in line. Under `srtf` this order
// is not asked for: gang_service.cpp has another one, which looks at all parties together.
//
// Where a policy goes by time served, each party has a share of the time: users have shares by
// their weights, and each user's jobs divide that share by theirs. A party's virtual time rises by
// time over share, so parties that want the same devices have the same virtual time in the long
// run.
//
// No class starves another: while a party of a higher class has one of its devices, the first party
// of a class that waits earns class_floor of the time. With a turn earned it goes first. The same
// holds of a party that has waited for too long, where the policy says when that is.
//
// What it does not do: it decides no turn's length and knows no rows (gang_rows.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/user_options.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/time/singles.h"

namespace gpushare::host {

struct Party {
  sched::Standing standing;                        // but for its virtual time
  std::map<std::uint32_t, double> weights;         // of its jobs, added up by user
  std::vector<std::size_t> devices;                // each once, in order
  sched::Setback setback = sched::Setback::kNone;  // by limits on time
  bool wants = false;                              // it waits, or runs
  bool runs = false;
  Nanos turn;  // so much is a turn
  // What it has had, and what its class owes it.
  double virtual_time = 0;
  Nanos earned;
  bool has_turn = false;  // since it was overdue, until the turn is over

  // What comes before the policy's order: limits on time, and classes.
  using Rank = std::tuple<sched::Setback, bool, wire::Priority>;
  [[nodiscard]] Rank rank() const { return {setback, !(is_due() || has_turn), standing.priority}; }
  [[nodiscard]] bool is_due() const { return earned > Nanos{} && earned >= turn; }
  [[nodiscard]] bool is_on(std::size_t device) const {
    return std::binary_search(devices.begin(), devices.end(), device);
  }
  [[nodiscard]] bool shares_device_with(const Party& other) const;
};

using Parties = std::vector<Party*>;

class Contest {
 public:
  // Of `users` the weights count. pre: a policy has that name.
  Contest(const std::string& policy, double class_floor, sched::Users users);

  // Whether gangs and single jobs are ordered by how long they run and whom they keep waiting
  // (gang_service.cpp), and not by turns.
  [[nodiscard]] bool is_by_service() const { return policy_->sharing().is_by_service; }
  // Whether some of them are of different classes.
  [[nodiscard]] static bool has_classes(const Parties& all);
  // When a party that stands so has waited too long, in seconds (OrderKey::overdue_at).
  [[nodiscard]] double overdue_at(const sched::Standing& standing) const {
    return policy_->key(standing).overdue_at;
  }
  // Limits on time first, then who is due, then the policy's order.
  [[nodiscard]] bool goes_before(const Party& first, const Party& second) const;
  // The party as it would be if it ended a turn of so long now.
  [[nodiscard]] Party after_turn(const Party& party,
                                 Nanos turn,
                                 const Parties& all,
                                 Nanos now) const;
  // How long `first` would have to run until `second` goes before it. Nothing: until it stands
  // otherwise. pre: `first` goes before.
  [[nodiscard]] std::optional<Nanos> time_before(const Party& first,
                                                 const Party& second,
                                                 const Parties& all) const;
  // All have stood as they do for so long: those who run are charged, and those who wait earn.
  void pass(const Parties& all, Nanos time) const;
  // The party comes, or comes back: it begins no earlier than those who want its devices. `self`:
  // how it stood before, among them.
  static void lift(Party& party, const Party& self, const Parties& all);

 private:
  [[nodiscard]] sched::OrderKey key(const Party& party) const;
  void earn(const Parties& all, Nanos time) const;

  std::unique_ptr<const sched::Policy> policy_;
  // The part of the time that a class earns while it waits below another; 0: nothing is earned.
  double class_floor_;
  sched::Users users_;
};

}  // namespace gpushare::host
