// Lanes: what the job tells the coordinator of them, and the slots it is told. See lane_chunks.h
// for what happens to memory, and messages.h for the rules.
#include <sys/stat.h>

#include <string>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

Bytes slots_of(std::size_t count) {
  return wire::kLaneSlotBytes * static_cast<std::int64_t>(count);
}

// Two descriptors of one memfd: each message brings a new one.
bool is_same_file(int a, int b) {
  struct stat first = {};
  struct stat second = {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

// pre: the route is kOutside; the word does not say yet that the lease is closed: the coordinator
// looks at the page's count before it grants the next lease.
void Runtime::Impl::close_lane() {
  const bool has_lane = link_ == Link::kAttached && is_registered_ && page() != nullptr;
  // Shared memory cannot hold all that private memory can: with jobs that have to make room for
  // each other between their turns, that would be the room they lack.
  // And ranks of a gang run at the same time, so they cannot use the same slots.
  const bool stays_out =
      std::exchange(was_spilled_in_gap_, false) || !address_.gang.empty() || !config_.lanes;
  spilled_at_close_ = residency_.totals().spilled;
  const bool may_promote = has_lane && !stays_out && page()->num_sharing.load(kRelaxed) > 1;
  alloc::LaneChange change = lane_chunks_.close(
      {.may_promote = may_promote, .scrub = config_.lane_scrub, .is_strict = config_.lane_strict});
  const Bytes more = slots_of(change.donated.size()) - change.given;
  room_ += more;
  counters_.shift_peaks(Bytes{} - change.given);
  if (stays_out) stay_out_of_lane();
  if (lane_epoch_ != epoch_) drop_lane_files();
  // Without a connection, the next Hello says it all.
  if (!has_lane) return;
  const bool is_news = more != Bytes{} || !change.donated.empty() || !change.returned.empty() ||
                       lane_chunks_.size() != lane_chunks_told_;
  if (!is_news) return;
  lane_chunks_told_ = lane_chunks_.size();
  unheard_lane_changes_[++num_lane_changes_] = more;
  log::debug("job {}: {} given up for its lane, {} slots kept, {} returned, {} chunks",
             address_.job.value, to_string(change.given), change.donated.size(),
             change.returned.size(), lane_chunks_told_);
  publish_usage(*page());
  // relaxed: the change of the word, in finish_close, publishes it.
  page()->lane_changes.store(num_lane_changes_, kRelaxed);
  send(wire::LaneChanged{.of = address_,
                         .n = num_lane_changes_,
                         .given = change.given,
                         .num_chunks = lane_chunks_told_,
                         .donated = std::move(change.donated),
                         .returned = std::move(change.returned)});
}

// All its chunks become private ones, and private ones are counted anew.
void Runtime::Impl::stay_out_of_lane() {
  const std::size_t before = lane_chunks_.size();
  const Status status = lane_chunks_.stay_out();
  need_as_room(before - lane_chunks_.size());
  if (!status.ok()) log::warn("job {}: {}", address_.job.value, status.to_string());
}

// pre: the lease is open, the route still kOutside. Does nothing where all slots are as they were.
Status Runtime::Impl::open_lane() {
  was_spilled_in_gap_ = residency_.totals().spilled > spilled_at_close_;
  const std::size_t before = lane_chunks_.size();
  if (before == 0) return {};
  const bool has_lane = page() != nullptr && !lane_files_.empty() && address_.gang.empty();
  Status status =
      has_lane ? lane_chunks_.open(lane_files_.back().get(), lane_slots_) : lane_chunks_.leave();
  need_as_room(before - lane_chunks_.size());
  return status;
}

// Chunks that the lane has no slots for: the next lease's room is to hold them.
void Runtime::Impl::need_as_room(std::size_t num_chunks) {
  counters_.shift_peaks(slots_of(num_chunks));
}

void Runtime::Impl::on_lane_table(wire::LaneTable table, std::vector<UniqueFd> fds) {
  MutexLock lock(mu_);
  if (fds.size() != 1) {
    log::warn("job {}: a lane's table with {} descriptors", address_.job.value, fds.size());
    connection_.shut_down();
    return;
  }
  if (lane_epoch_ != epoch_) drop_lane_files();
  if (lane_files_.empty() || !is_same_file(fds[0].get(), lane_files_.back().get())) {
    lane_files_.push_back(std::move(fds[0]));
  }
  lane_epoch_ = epoch_;
  lane_slots_ = std::move(table.slots);
  needs_.on_grant(table.n, 0);
  changed_.notify_all();
}

// The connection is gone, or about to be replaced. What an open lease uses stays this job's own;
// all else of the lane is left to the others.
void Runtime::Impl::disconnect_lane() {
  const bool is_open = !is_closed_.load(kRelaxed);
  const std::size_t before = lane_chunks_.size();
  const Status status = lane_chunks_.on_disconnect(is_open);
  need_as_room(before - lane_chunks_.size());
  if (!status.ok()) log::error("job {}: {}", address_.job.value, status.to_string());
  lane_slots_.clear();
  lane_chunks_told_ = 0;
  num_lane_changes_ = 0;
  unheard_lane_changes_.clear();
}

void Runtime::Impl::adopt_lane(std::uint64_t epoch) {
  epoch_ = epoch;
  // Nobody keeps the books of that lane any more.
  if (epoch == lane_epoch_) return;
  lane_chunks_.forget_slots();
  drop_lane_files();
}

// A file of a coordinator that is gone holds its memory as long as anybody has it open.
void Runtime::Impl::drop_lane_files() {
  if (!lane_chunks_.has_forgotten()) lane_files_.clear();
}

// By how much the job's room differs from what a coordinator says that has heard so many changes.
Bytes Runtime::Impl::unheard_lane_room(std::uint64_t heard) {
  auto& unheard = unheard_lane_changes_;
  unheard.erase(unheard.begin(), unheard.upper_bound(heard));
  Bytes sum;
  for (const auto& [n, room] : unheard)
    sum += room;
  return sum;
}

}  // namespace gpushare::client
