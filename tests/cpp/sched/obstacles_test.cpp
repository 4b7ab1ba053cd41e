#include "csrc/sched/serve/obstacles.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "csrc/sched/report/explain.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/time/shares.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

constexpr JobId kBlockedJob{1};
constexpr JobId kOtherJob{2};
constexpr std::uint32_t kUser = 7;
constexpr Nanos kNow = seconds(5);

// Job 1 stands in the line of a free lane since one second, and needs 100 MiB.
class Obstacles : public ::testing::Test {
 protected:
  Obstacles() : table_(*make_table({}, Nanos{0})) {
    for (const JobId id : {kBlockedJob, kOtherJob}) {
      Job& job = table_.jobs.make(id);
      job.id = job.who.of.job = id;
      job.who.of.device = table_.device.name;
      job.who.uid = kUser;
      job.begin_iterations({}, Nanos{0});
      table_.device.ledger.attach(id, Bytes{0});
      table_.device.ledger.belongs_to(id, kUser);
    }
    job().usage.need = mib(100);
    job().place.stand_in_line(1);
    job().place.waiting_since = seconds(1);
    lane().waiting.insert(order_key(table_.device, job()));
  }

  Job& job() { return table_.at(kBlockedJob); }
  Job& other() { return table_.at(kOtherJob); }
  Lane& lane() { return table_.device.lanes.front(); }
  BeginCase begins(Setback allowed = Setback::kNone) {
    return {table_, lane(), job(), kNow, allowed};
  }
  // What is in the way, for people; it is what `gpushare why` begins with.
  std::string text() {
    const auto obstacle = obstacle_to(begins());
    if (!obstacle.has_value()) return {};
    const std::string text = text_of(begins(), *obstacle);
    EXPECT_EQ(explain(table_, kBlockedJob, kNow).substr(0, text.size()), text);
    return text;
  }
  std::optional<Nanos> until() { return own_obstacle_to(begins())->until; }

  Table table_;
};

TEST_F(Obstacles, AreNotThereForAJobThatMayBegin) {
  EXPECT_EQ(text(), "");
  EXPECT_FALSE(own_obstacle_to(begins()).has_value());
}

TEST_F(Obstacles, OfTheLaneAreNotTheJobsOwn) {
  lane().begin_lease(Lease(kOtherJob, seconds(2)), seconds(2));
  EXPECT_EQ(text(), "waits for 2's boundary");
  EXPECT_TRUE(is_over_at_boundary(*obstacle_to(begins())));
  EXPECT_FALSE(own_obstacle_to(begins()).has_value());
  other().lose_connection();
  EXPECT_EQ(text(), "waits for 2, whose connection is lost, to come back or end");
}

TEST_F(Obstacles, AnAnswerThatIsOwedIsOne) {
  job().room.revoke.emplace();
  job().room.revoke->bytes = mib(12);
  EXPECT_EQ(text(), "gives 12.0 MiB to others first");
  EXPECT_FALSE(until().has_value()) << "its answer will say so";
}

TEST_F(Obstacles, MemoryOfSuspendedJobsIsOne) {
  other().place.suspended_since = seconds(3);
  table_.device.ledger.attach(kOtherJob, table_.options.capacity - mib(50));
  EXPECT_EQ(text().substr(0, 27), "waits for 100.0 MiB of room");
  EXPECT_EQ(until(), kNow + table_.options.memory_wait);
}

TEST_F(Obstacles, AUsersMemoryLimitIsOneForAWhile) {
  job().settings.user_limit = mib(60);
  table_.device.ledger.attach(kOtherJob, mib(10));
  EXPECT_EQ(
      text(),
      "waits for other jobs of its user to give room: user 7's jobs hold 10.0 MiB of the 60.0 "
      "MiB that they may");
  EXPECT_EQ(until(), seconds(1) + table_.options.memory_wait);
  EXPECT_TRUE(is_for_user_to_clear(*own_obstacle_to(begins())));
  job().place.waiting_since = kNow - table_.options.memory_wait;
  EXPECT_EQ(text(), "") << "it gets what there is";
}

TEST_F(Obstacles, ALimitOnTimeIsOneBeyondWhatIsAllowed) {
  job().settings.share_limit = 0.5;
  job().settings.is_elastic = true;
  table_.device.job_allowances[kBlockedJob] = {.seconds = -1, .as_of = kNow, .is_used_up = true};
  EXPECT_EQ(text(), "job 1 is at the limit of 50 % of the time, for 2.5 s: others go before");
  EXPECT_EQ(until(), earned_at(table_, job()));
  EXPECT_FALSE(own_obstacle_to(begins(Setback::kByOwn)).has_value()) << "nobody goes before it";
  job().settings.is_elastic = false;
  EXPECT_TRUE(own_obstacle_to(begins(Setback::kByOwn)).has_value()) << "a hard limit bars it";
}

TEST_F(Obstacles, ALaneThatStaysFreeForItsLastHolderIsOne) {
  lane().hold = Hold{kOtherJob, kNow + millis(100)};
  EXPECT_EQ(text(), "") << "nobody waits for what job 2 could give";
  WaitingNeed need;
  need.job = kBlockedJob;
  table_.device.add_need(need);
  EXPECT_EQ(text_of(begins(), *obstacle_to(begins())),
            "the lane stays free until 2 parks, since 1 waits for room");
  EXPECT_FALSE(own_obstacle_to(begins()).has_value());
  other().usage.is_parked = true;
  EXPECT_FALSE(obstacle_to(begins()).has_value()) << "it has parked";
}

TEST_F(Obstacles, AChangeOfTheLaneThatWasNotHeardIsOne) {
  other().usage.lane.changes = 1;
  EXPECT_EQ(text(), "waits until it is heard which memory of the lane its last holder keeps");
}

}  // namespace
}  // namespace gpushare::sched
