// When the ranks of a gang on several devices may run: the rows of all gangs of a host. Pure: no
// clock, thread or socket.
//
// Which problem it solves: inside a step a rank waits for the others. If each device gave its turns
// alone, gang A could have one device and gang B the other, and both would wait for ever. So a gang
// has a row: all its devices at once, until each rank has made the same number of steps.
//
//   kWaiting --open--> kOpen (until stop_at) --all have reached it--> kWaiting
//   kOpen --a rank ends, does not come, or others wait too long--> kClosing
//   kClosing --nobody has a lease--> kWaiting
//   kWaiting --ranks come with leases of a coordinator before--> kUnknown --all have said--> kOpen
//
// How it is used: report() says what is seen of a rank now. A report may come late or twice, since
// only the newest counts. settle() says which ranks may begin iterations, and until which step. The
// caller carries that out on all devices, and calls again at `look_at`.
//
// What it does not do: it grants no lease. On each device the machine of csrc/sched does, to a rank
// whose row is open before all others there (csrc/sched/turns/row.h). Hosts are apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/host/party.h"
#include "csrc/host/rank_report.h"

namespace gpushare::host {

struct RowOrders {
  std::vector<RankOrder> ranks;   // those whose order has changed
  std::vector<std::string> said;  // for the log
  std::optional<Nanos> look_at;   // settle() again by then, with new reports

  void look_by(Nanos at) { look_at = std::min(look_at.value_or(at), at); }
};

struct RowOptions {
  std::vector<std::string> devices = {};  // their names
  Nanos least_slice = millis(250);
  Nanos most_slice = seconds(10);
  double switch_loss = 0.02;    // of the time, as for single jobs
  std::string policy = "fair";  // one of sched::policy_names()
  double class_floor = 0.05;    // of the time, for each class that waits below another
  sched::Users users = {};      // their weights count, and nothing else
  // How often a row that others wait for is looked at for ranks that idle, who say nothing.
  Nanos idle_look = millis(20);
};

// How long the first ranks of a program wait for those that were never here.
inline constexpr Nanos kMissing = seconds(10);

class GangRows {
 public:
  explicit GangRows(RowOptions options);

  // The device has this name from now on; the next number is a new device. pre: no rank is on it.
  void name_device(std::size_t device, std::string name);
  // pre: the device is one of those.
  void report(const RankReport& report, Nanos now);
  // The rank has ended, or its process has.
  void forget(JobId job);
  // The jobs without a row that wait in line on the device, or have a lease there. Returns whether
  // they stand in another way, so that the rows should be settled anew.
  bool note_singles(std::size_t device, const sched::Singles& singles);
  // pre: a policy has that name.
  void set_policy(const std::string& name);
  RowOrders settle(Nanos now);

  [[nodiscard]] bool empty() const { return gangs_.empty(); }
  // The gang whose row is open on the device, or ends there; null: none.
  [[nodiscard]] const GangName* row_on(std::size_t device) const;
  void check_invariants() const;

 private:
  using Taken = std::map<std::size_t, const GangName*>;  // devices, and for whose row
  enum class State : std::uint8_t { kWaiting, kUnknown, kOpen, kClosing };
  struct Rank {
    RankReport seen;
    // Is added to the count of this rank, so that it agrees with the counts of the others (learn()
    // in gang_trouble.cpp).
    std::int64_t shift = 0;
    Nanos wants_since;
    std::uint64_t steps_then = 0;  // when it had another number of iterations to go
    RankOrder told = {};
    bool is_told = false;

    [[nodiscard]] std::uint64_t steps() const;
    // On its device, without what it has run since that was said.
    [[nodiscard]] double seconds_to_run() const;
  };
  struct Gang {
    std::map<JobId, Rank> ranks;
    State state = State::kWaiting;
    std::uint64_t stop_at = 0;          // the same for all ranks
    Party party;                        // its devices are those of the ranks that are here
    bool has_news = true;               // a rank came, went, or stands in another way
    bool is_first = false;              // by service: nobody before it wants its devices
    Nanos waits_since;                  // its last row ended, or it came
    Nanos waited;                       // for its rows before
    bool was_complete = false;          // all its ranks were here
    Nanos since;                        // the first of them came, or the row was opened
    Nanos moved_at;                     // a rank made a step or changed how it stands
    std::optional<Nanos> wanted_since;  // others wait for the devices of its row
    std::string waits_for;              // if no row is open
    // What its ranks were told last.
    std::tuple<State, std::uint64_t, std::string> told = {};

    template <typename Is>
    [[nodiscard]] bool has(const Is& is) const {
      return std::any_of(ranks.begin(), ranks.end(), [&](const auto& r) { return is(r.second); });
    }
    [[nodiscard]] Nanos gap() const;        // the longest usual one
    [[nodiscard]] Nanos iteration() const;  // of its slowest rank; 0: unknown
    [[nodiscard]] Nanos time_of(std::uint64_t steps) const;
    [[nodiscard]] std::uint64_t most_steps() const;
    [[nodiscard]] double seconds_to_run() const;
    [[nodiscard]] bool is_length_known() const;
    // The time since which it has waited, with all its ranks there.
    [[nodiscard]] Nanos stands_since() const;
  };
  // The party that waits for too long for the longest time, or will be the first to do so.
  struct Overdue {
    Party* party;
    Nanos at;  // from then on it has waited for too long
  };
  // The party that has its turn since it was overdue.
  struct OverdueTurn {
    Party* party;
    Nanos ends;
  };
  // The single jobs of a device.
  struct Singles {
    sched::Singles seen;
    bool has_news = true;  // they stand in another way
    Party party;
    bool have_turn = false;  // before the next row on their device
    Nanos turn_until;        // for so long at least
  };

  void settle_running(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void settle_stuck(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void settle_late(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void extend(Gang& gang, Nanos now, RowOrders& orders);
  void open(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void adopt(Gang& gang, Nanos now, RowOrders& orders);
  void tell(const GangName& name, Gang& gang, RowOrders& orders) const;
  void note_news(Gang& gang);

  // gang_waiting.cpp
  void settle_waiting(Nanos now, RowOrders& orders);
  void settle_by_turns(Nanos now, RowOrders& orders);
  std::optional<std::string> obstacle(const Gang& gang, Nanos now, RowOrders& orders);
  std::string why_not(const Gang& gang, Taken& taken, Nanos now, RowOrders& orders);
  bool let_singles_first(const Gang& gang, Nanos now, RowOrders& orders);
  [[nodiscard]] std::string text_of_row(const GangName& of, std::size_t device) const;

  // gang_service.cpp
  using ByDevice = std::vector<const GangName*>;  // null: nobody
  struct InLine {
    std::tuple<Party::Rank, double, Nanos> place;  // the second is the service
    std::reference_wrapper<const GangName> name;
    std::reference_wrapper<Gang> gang;
  };
  struct ServiceStep {
    ByDevice rows;    // that are there now
    ByDevice firsts;  // whom the device is for
    Nanos now;
    RowOrders& orders;
  };
  void settle_by_service(Nanos now, RowOrders& orders);
  void settle_in_line(const GangName& name, Gang& gang, ServiceStep& step);
  std::vector<InLine> in_order_of_service();
  [[nodiscard]] std::optional<std::string> first_before(const Gang& gang,
                                                        const ByDevice& firsts) const;
  [[nodiscard]] std::optional<std::size_t> single_before(const Gang& gang) const;
  static std::optional<std::size_t> find_on(const Gang& gang, const ByDevice& of);

  // gang_overdue.cpp
  void earn_overdue(Nanos time, Nanos now);
  void note_overdue(Party& party, double at, Nanos now);
  void begin_overdue_turn(Party& party, Nanos now);
  void end_overdue_turn(Nanos now);
  void forget_overdue();
  [[nodiscard]] double overdue_at(const Gang& gang) const;
  void look_for_overdue(Nanos now, RowOrders& orders) const;

  // gang_parties.cpp
  void pass_time(Nanos now);
  void count_wanting();
  void add_to_wanting(const Gang& gang, int num);
  static void stand(const Gang& gang, Party& party);
  [[nodiscard]] Party party_of(const Gang& gang) const;
  [[nodiscard]] Party party_of(const Singles& singles, std::size_t device, Nanos now) const;
  [[nodiscard]] bool is_wanted_by_others(const Gang& gang) const;
  [[nodiscard]] bool must_end(const Gang& gang, Nanos now) const;

  [[nodiscard]] bool is_beside_row(const Gang& gang) const;
  [[nodiscard]] Nanos slice(const Gang& gang) const;
  [[nodiscard]] Nanos most_of_row() const;
  [[nodiscard]] std::uint64_t steps_in_slice(const Gang& gang) const;
  [[nodiscard]] static bool is_free(const Gang& gang);
  [[nodiscard]] static bool wants_row(const Gang& gang);
  static void learn(Gang& gang);

  RowOptions options_;
  std::map<GangName, Gang> gangs_;
  std::map<JobId, GangName> gang_of_;
  std::vector<Singles> singles_;  // by device
  Parties parties_;               // all of them, while it settles
  Contest contest_;
  std::optional<Nanos> settled_at_;
  // By service the gangs that may open a row stay the same while nothing is new and no time has
  // come.
  bool is_line_new_ = false;
  std::optional<Nanos> line_due_;
  std::optional<Overdue> overdue_;  // as of when the line was gone through
  std::optional<OverdueTurn> overdue_turn_;
  // By device: how many gangs that wait want a row there. Counted where the line is new.
  std::vector<int> wanting_;
};

}  // namespace gpushare::host
