#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/wire/lease_page.h"

#include "tests/cpp/wire/page_in_state.h"

namespace gpushare::wire {
namespace {

using testing::PageInState;

TEST(LeasePageFields, ZeroedMemoryIsAnIdlePageOfNobody) {
  const LeasePage page{};
  EXPECT_EQ(load(page), LeaseWord(Term{0}, LeaseState::kIdle, false));
  EXPECT_EQ(read_usage(page), Usage{});
  EXPECT_FALSE(is_valid(page));
}

TEST(LeasePageFields, InitialisedPageIsValidAndIdle) {
  LeasePage page{};
  initialise(page, 42, {.job = JobId{7}});
  EXPECT_TRUE(is_valid(page));
  EXPECT_EQ(page.epoch, 42U);
  EXPECT_EQ(page.job, 7U);
  EXPECT_EQ(load(page), LeaseWord());
}

TEST(LeasePageFields, SaysWhichRankOfWhichGang) {
  LeasePage page{};
  initialise(page, 42, {.job = JobId{7}, .gang = "llm", .rank = 1, .ranks = 4});
  EXPECT_TRUE(is_valid(page));
  EXPECT_EQ(page.rank, 1U);
  EXPECT_EQ(page.ranks, 4U);
  LeasePage other{};
  initialise(other, 42, {.job = JobId{8}, .gang = "llm", .rank = 2, .ranks = 4});
  EXPECT_EQ(page.gang, other.gang);
  initialise(other, 42, {.job = JobId{8}, .gang = "vit", .rank = 2, .ranks = 4});
  EXPECT_NE(page.gang, other.gang);
  initialise(other, 42, {.job = JobId{8}, .rank = 4, .ranks = 4});
  EXPECT_EQ(other.gang, 0U);
  EXPECT_FALSE(is_valid(other));
}

TEST(LeasePageFields, AShareOfTheCoresComesBackAsItWent) {
  for (const CoreShare share :
       {CoreShare{}, CoreShare{0, 2}, CoreShare{1, 2}, CoreShare{65533, 65535}})
    EXPECT_EQ(core_share_of(to_bits(share)), share);
  EXPECT_EQ(to_bits({}), 0U);
}

TEST(LeasePageFields, AShareThatIsNoneIsAllCores) {
  for (const std::uint32_t bits : {1U, 2U << 16 | 2U, 7U << 16, 0xffffffffU})
    EXPECT_TRUE(core_share_of(bits).is_all()) << bits;
}

TEST(LeasePageFields, PageOfAnotherLayoutIsNotValid) {
  LeasePage page{};
  initialise(page, 42, {.job = JobId{7}});
  page.magic += 1;
  EXPECT_FALSE(is_valid(page));
  initialise(page, 42, {.job = JobId{7}});
  page.version = kProtocolVersion + 1;
  EXPECT_FALSE(is_valid(page));
  initialise(page, 42, {.job = JobId{0}});
  EXPECT_FALSE(is_valid(page));
  initialise(page, 42, {.job = JobId{7}});
  page.reserved0[23] = 1;
  EXPECT_FALSE(is_valid(page));
}

TEST(LeasePageFields, UsageIsWhatTheJobWrote) {
  PageInState gap(LeaseWord(Term{3}, LeaseState::kOpenGap, false));
  LeasePage& page = gap.page;
  page.iterations = 11;
  page.optimizer_steps = 12;
  page.busy_ns = 13;
  page.stall_ns = 14;
  page.changed_ns = 15;
  page.is_parked = 1;
  page.live_bytes = 16;
  page.need_bytes = 17;
  page.resident_bytes = 18;
  page.spilled_bytes = 19;
  page.host_file_bytes = 24;
  page.late_bytes = 26;
  page.device_free_bytes = 27;
  page.outside_bytes = 25;
  page.lane_changes = 20;
  page.lane_bytes = 21;
  page.donated_bytes = 22;
  page.overflow_bytes = 23;
  page.gap_ns = 33;
  page.mean_gap_ns = 34;
  page.training_ns = 28;
  page.training_tail_ns = 29;
  page.evaluation_ns = 30;
  page.evaluation_tail_ns = 31;
  page.boundary_kind = static_cast<std::uint32_t>(BoundaryKind::kForward);
  const Usage expected{.iterations = 11,
                       .optimizer_steps = 12,
                       .busy = Nanos{13},
                       .stall = Nanos{14},
                       .changed_at = Nanos{15},
                       .is_in_gap = true,
                       .is_parked = true,
                       .live = Bytes{16},
                       .need = Bytes{17},
                       .resident = Bytes{18},
                       .spilled = Bytes{19},
                       .outside = Bytes{25},
                       .lane = {.changes = 20, .mapped = Bytes{21}, .donated = Bytes{22}},
                       .overflow = Bytes{23},
                       .host_file = Bytes{24},
                       .late = Bytes{26},
                       .device_free = Bytes{27},
                       .gap = {.usual = Nanos{33}, .mean = Nanos{34}},
                       .phases = {.training = {Nanos{28}, Nanos{29}},
                                  .evaluation = {Nanos{30}, Nanos{31}},
                                  .is_evaluating = true}};
  EXPECT_EQ(read_usage(page), expected);
}

TEST(LeasePageFields, OnlyTheGapIsTheGap) {
  for (const LeaseState state : testing::kAllStates) {
    PageInState start(LeaseWord(Term{3}, state, false));
    EXPECT_EQ(read_usage(start.page).is_in_gap, state == LeaseState::kOpenGap);
  }
}

TEST(LeasePageFields, NegativeCountersAreReadAsZero) {
  LeasePage page{};
  for (auto* field : {&page.busy_ns,       &page.stall_ns,          &page.changed_ns,
                      &page.live_bytes,    &page.need_bytes,        &page.resident_bytes,
                      &page.spilled_bytes, &page.outside_bytes,     &page.lane_bytes,
                      &page.donated_bytes, &page.overflow_bytes,    &page.host_file_bytes,
                      &page.late_bytes,    &page.device_free_bytes, &page.gap_ns,
                      &page.mean_gap_ns,   &page.training_ns,       &page.training_tail_ns,
                      &page.evaluation_ns, &page.evaluation_tail_ns}) {
    *field = std::numeric_limits<std::int64_t>::min();
  }
  EXPECT_EQ(read_usage(page), Usage{});
}

TEST(LeasePageFields, ALyingPageCannotMakeSumsOverflow) {
  std::vector<char> noise(sizeof(LeasePage), '\x7f');
  LeasePage page{};
  std::memcpy(static_cast<void*>(&page), noise.data(), noise.size());
  const Usage usage = read_usage(page);
  EXPECT_EQ(usage.iterations, static_cast<std::uint64_t>(kMaxAmount));
  EXPECT_EQ(usage.optimizer_steps, static_cast<std::uint64_t>(kMaxAmount));
  for (const Bytes bytes :
       {usage.live, usage.need, usage.resident, usage.spilled, usage.host_file, usage.late}) {
    EXPECT_EQ(bytes.value(), kMaxAmount);
  }
  for (const Nanos time : {usage.busy, usage.stall, usage.changed_at, usage.gap.usual,
                           usage.gap.mean, usage.phases.training.usual, usage.phases.training.tail,
                           usage.phases.evaluation.usual, usage.phases.evaluation.tail}) {
    EXPECT_EQ(time.value(), kMaxAmount);
  }
}

}  // namespace
}  // namespace gpushare::wire
