// When the ranks of a gang on several devices may run: the rows of all gangs of a host. Pure: no
// clock, thread or socket.
//
// Which problem it solves: inside a step a rank waits for the others. If each device gave its turns
// alone, gang A could have one device and gang B the other, and both would wait for ever. So a gang
// has a row: all its devices at once, until each rank has made the same number of steps.
//
//   kWaiting --open--> kOpen (until stop_at) --all have reached it--> kWaiting, last in order
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
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::host {

// A user's gang of that name.
using GangName = std::pair<std::uint32_t, std::string>;

// How a rank stands, as its device sees it. Its steps count from when it joined the gang.
struct RankReport {
  GangName gang;
  JobId job;
  std::uint32_t ranks = 1;  // of the gang, as it says
  std::size_t device = 0;
  bool is_known = true;  // false: its steps are not known yet, after a lost connection
  std::uint64_t steps = 0;
  std::uint64_t stop_at = 0;  // that it was told last, perhaps by a coordinator before; 0: nothing
  bool wants = false;         // it waits in its gate
  bool has_lease = false;
  bool is_in_gap = false;        // with a lease, between two iterations
  bool is_held_back = false;     // paused, suspended or lost: it gets no lease
  Nanos iteration = {};          // how long one takes; 0: unknown
  Nanos switching = {};          // what its last switch cost: until its memory was back
  Nanos gap = {};                // how long it usually is between two iterations; 0: unknown
  double remaining = 0;          // seconds that it is thought to run still (sched/job/job.h)
  bool is_length_known = false;  // false: that is what it has had, and grows while it runs
  bool operator==(const RankReport&) const = default;
};

// What a rank may do from now on.
struct RankOrder {
  JobId job;
  bool is_free = false;       // all of its gang are on one device, which needs no row
  bool is_open = false;       // it may begin iterations while it has made fewer steps than stop_at
  std::uint64_t stop_at = 0;  // at this count of its own it ends its lease; 0: it was told none
  std::string why = {};       // for people: until when its row is open, or what it waits for
  bool operator==(const RankOrder&) const = default;
};

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
  double switch_loss = 0.02;   // of the time, as for single jobs
  bool is_by_service = false;  // as set_by_service() says
  // How often a row that others wait for is looked at for ranks that idle, who say nothing.
  Nanos idle_look = millis(20);
};

class GangRows {
 public:
  explicit GangRows(RowOptions options);

  // pre: the device is one of those.
  void report(const RankReport& report, Nanos now);
  // The rank has ended, or its process has.
  void forget(JobId job);
  // true: gangs and single jobs have one order, by how long they run still and whom they keep
  // waiting (gang_service.cpp). false: gangs have rows in turn, and single jobs between them.
  void set_by_service(bool is_by_service);
  // How many jobs without a row wait in line on the device, or have a lease there; and how long the
  // first of them has to run still, in seconds.
  void note_singles(std::size_t device, std::size_t num, std::optional<double> first = {});
  RowOrders settle(Nanos now);

  [[nodiscard]] bool empty() const { return gangs_.empty(); }
  // The gang whose row is open on the device, or ends there; null: none.
  [[nodiscard]] const GangName* row_on(std::size_t device) const;
  void check_invariants() const;

 private:
  enum class State : std::uint8_t { kWaiting, kUnknown, kOpen, kClosing };
  struct Rank {
    RankReport seen;
    // Is added to the count of this rank, so that it agrees with the counts of the others (learn()
    // in gang_trouble.cpp).
    std::int64_t shift = 0;
    Nanos wants_since;
    std::uint64_t steps_then = 0;  // when `remaining` was another one
    RankOrder told = {};
    bool is_told = false;

    [[nodiscard]] std::uint64_t steps() const;
  };
  struct Gang {
    std::map<JobId, Rank> ranks;
    State state = State::kWaiting;
    std::uint64_t stop_at = 0;          // the same for all ranks
    std::uint64_t place = 0;            // in the order of gangs: the lowest is first
    std::vector<std::size_t> devices;   // of its ranks, each once, in order
    bool has_news = true;               // a rank came, went, or stands in another way
    bool is_first = false;              // by service: nobody before it wants its devices
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
    [[nodiscard]] std::uint64_t most_steps() const;
    [[nodiscard]] double seconds_to_run() const;
    [[nodiscard]] bool is_length_known() const;
  };

  void settle_running(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void settle_stuck(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void settle_late(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void settle_waiting(Nanos now, RowOrders& orders);
  void settle_in_turn(Nanos now, RowOrders& orders);
  void settle_by_service(Nanos now, RowOrders& orders);
  void extend_if_alone(Gang& gang, Nanos now, RowOrders& orders);
  void open(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders);
  void adopt(Gang& gang, Nanos now);
  std::optional<std::string> obstacle(const Gang& gang, Nanos now, RowOrders& orders);
  void tell(const GangName& name, Gang& gang, RowOrders& orders) const;

  void note_news(Gang& gang);
  void count_wanting();
  void add_to_wanting(const Gang& gang, int num);
  [[nodiscard]] bool is_wanted_by_others(const Gang& gang) const;
  [[nodiscard]] bool makes_way(const Gang& gang) const;
  [[nodiscard]] std::optional<std::size_t> single_before(const Gang& gang) const;
  [[nodiscard]] Nanos slice(const Gang& gang) const;
  [[nodiscard]] Nanos most_of_row() const;
  [[nodiscard]] Nanos turn_after_row(const Gang& gang, Nanos now) const;
  [[nodiscard]] std::uint64_t steps_in_slice(const Gang& gang) const;
  [[nodiscard]] static bool is_free(const Gang& gang);
  [[nodiscard]] static bool wants_row(const Gang& gang);
  static void learn(Gang& gang);

  RowOptions options_;
  std::map<GangName, Gang> gangs_;
  std::map<JobId, GangName> gang_of_;
  std::uint64_t places_ = 0;
  // By device: how many single jobs are there, and until when they have the device before a row.
  std::vector<std::size_t> singles_;
  std::vector<Nanos> singles_until_;
  std::vector<std::optional<double>> first_single_;  // seconds that it has to run still
  // Who may open a row now does not change while nothing is new and no time has come.
  bool is_line_new_ = false;
  std::optional<Nanos> line_due_;
  // By device: how many gangs that wait want a row there. Counted where the line is new.
  std::vector<int> wanting_;
};

}  // namespace gpushare::host
