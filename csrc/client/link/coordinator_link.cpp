// A connection that ends sooner than kShort was of no use. The pause before the next one begins
// with the fourth such connection in a row, and doubles with each one after it. Whatever ended them
// may be over by then.
#include "csrc/client/link/coordinator_link.h"

#include <algorithm>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {
namespace {

// How long a coordinator is only looked for before one is started. One that ends in order leaves
// its socket for an instant, and one that somebody else restarts needs a little longer.
constexpr Nanos kPatience = millis(200);
// How long the coordinator of a service is looked for after its loss. A job cannot start that one,
// and a coordinator of its own beside it would give the device away twice.
constexpr Nanos kPatienceWithService = seconds(3);
constexpr Nanos kShort = seconds(1);
constexpr int kMostUseless = 12;
constexpr int kNumWithoutPause = 3;    // connections of no use without a pause after them
constexpr int kMostTimesLonger = 100;  // the longest pause, in times of the first

}  // namespace

void CoordinatorLink::adopt(Connection connection, const wire::Welcome& welcome, Nanos now) {
  if (state_ == State::kLost) ++num_reconnects_;
  state_ = State::kAttached;
  connected_at_ = now;
  connection_ = std::move(connection);
  address_ = welcome.of;
  epoch_ = welcome.epoch;
  capacity_ = welcome.capacity;
  memory_wait_ = welcome.memory_wait;
}

// A connection that lasted for a while was of use, so the count of useless ones begins anew.
void CoordinatorLink::lose(bool is_of_service, Nanos now) {
  state_ = State::kLost;
  is_of_service_ = is_of_service;
  connection_.close();
  num_useless_ = now - connected_at_ < kShort ? num_useless_ + 1 : 0;
}

void CoordinatorLink::go_unmanaged(const std::string& reason) {
  state_ = State::kUnmanaged;
  unmanaged_reason_ = reason;
  connection_.close();
}

void CoordinatorLink::on_fork() {
  state_ = State::kForked;
  connection_.close();
  address_ = wire::Address();
}

bool CoordinatorLink::send(const wire::JobMessage& message) {
  if (!is_attached()) return false;
  const Status status = connection_.send(message);
  if (status.ok()) return true;
  log::info("job {}: {}", address_.job.value, status.message());
  connection_.shut_down();
  return false;
}

bool CoordinatorLink::has_given_up() const { return num_useless_ >= kMostUseless; }

Nanos CoordinatorLink::pause_before_next(Nanos first) const {
  const Nanos longest = first * kMostTimesLonger;
  Nanos pause = num_useless_ < kNumWithoutPause ? Nanos{0} : first;
  for (int i = kNumWithoutPause; i < num_useless_ && pause < longest; ++i)
    pause = pause * 2;
  return std::min(pause, longest);
}

Nanos CoordinatorLink::patience() const {
  return is_of_service_ ? kPatienceWithService : kPatience;
}

void CoordinatorLink::join_gang(const std::string& gang, std::uint32_t rank, std::uint32_t ranks) {
  address_.gang = gang;
  address_.rank = rank;
  address_.ranks = ranks;
}

void CoordinatorLink::on_explained(std::string text) {
  explanation_ = std::move(text);
  ++num_explained_;
}

}  // namespace gpushare::client
