// Random interleavings of the job's and the coordinator's operations against a plain second reading
// of the drawing: a table of (operation, state, asked) -> (state, asked).
#include <rapidcheck.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/wire/lease_page.h"

namespace gpushare::wire {
namespace {

enum class Op : std::uint8_t {
  kBegin,
  kEnd,
  kWant,
  kGiveUp,
  kStartClose,
  kFinishClose,
  kGrant,
  kAsk,
  kAskStale,
};

struct Model {
  LeaseState state = LeaseState::kIdle;
  bool is_asked = false;
  std::uint64_t term = 0;
  bool operator==(const Model&) const = default;
};

struct Arrow {
  Op op;
  LeaseState from;
  std::optional<bool> is_asked;  // nothing: either
  LeaseState to;
  bool is_asked_after;
};

using enum LeaseState;
// Every arrow; what is not here changes nothing.
const std::vector<Arrow> kArrows = {
    {Op::kBegin, kOpenGap, false, kOpenBusy, false},
    {Op::kEnd, kOpenBusy, false, kOpenGap, false},
    {Op::kEnd, kOpenBusy, true, kClosing, false},
    {Op::kWant, kIdle, std::nullopt, kWanted, false},
    {Op::kGiveUp, kWanted, std::nullopt, kIdle, false},
    {Op::kStartClose, kOpenBusy, std::nullopt, kClosing, false},
    {Op::kStartClose, kOpenGap, std::nullopt, kClosing, false},
    {Op::kFinishClose, kClosing, std::nullopt, kIdle, false},
    {Op::kGrant, kWanted, std::nullopt, kOpenBusy, false},
    {Op::kAsk, kOpenBusy, std::nullopt, kOpenBusy, true},
    {Op::kAsk, kOpenGap, std::nullopt, kClosing, true},
};

// The model's next value; nothing if there is no arrow.
std::optional<Model> step(const Model& model, Op op) {
  for (const Arrow& arrow : kArrows) {
    if (arrow.op != op || arrow.from != model.state) continue;
    if (arrow.is_asked.has_value() && *arrow.is_asked != model.is_asked) continue;
    return Model{arrow.to, arrow.is_asked_after, model.term + (op == Op::kGrant ? 1 : 0)};
  }
  return std::nullopt;
}

// Whether the page says of itself what the model says: that there was an arrow.
bool apply(LeasePage& page, Op op, const Model& model) {
  switch (op) {
    case Op::kBegin: return try_begin(page) == BeginResult::kEntered && model.state == kOpenGap;
    case Op::kEnd: return try_end(page) != EndResult::kNotOpen;
    case Op::kWant: return want(page);
    case Op::kGiveUp: return give_up(page);
    case Op::kStartClose: return start_close(page);
    case Op::kFinishClose:
      // Its pre: only a closer calls it.
      if (model.state == kClosing) finish_close(page);
      return model.state == kClosing;
    case Op::kGrant: return grant(page, Term{model.term + 1});
    case Op::kAsk: return ask(page, Term{model.term}) != AskResult::kStale;
    case Op::kAskStale: return ask(page, Term{model.term + 1}) != AskResult::kStale;
  }
  return false;
}

RC_GTEST_PROP(LeaseWordProperty, FollowsTheDrawingWhateverTheOrder, ()) {
  const auto ops = *rc::gen::container<std::vector<std::uint8_t>>(
      rc::gen::inRange<std::uint8_t>(0, static_cast<std::uint8_t>(Op::kAskStale) + 1));
  LeasePage page{};
  initialise(page, 1, {.job = JobId{1}});
  Model model;
  for (const std::uint8_t number : ops) {
    const Op op{number};
    const std::uint32_t low_before = load(page).low();
    const std::optional<Model> next = step(model, op);
    RC_ASSERT(apply(page, op, model) == next.has_value());
    if (next.has_value()) model = *next;
    const LeaseWord word = load(page);
    RC_ASSERT(word == LeaseWord(Term{model.term}, model.state, model.is_asked));
    // A futex waiter that compares the value from before must see each grant.
    if (next.has_value() && op == Op::kGrant) RC_ASSERT(word.low() != low_before);
  }
}

}  // namespace
}  // namespace gpushare::wire
