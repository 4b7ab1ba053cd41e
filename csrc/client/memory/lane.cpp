// Lanes: what the job tells the coordinator of them, and the slots that it is told. lane_chunks.h
// has what happens to memory, messages.h the rules.
//
// At a close the job says what has changed (close_lane): room given up, slots kept, slots returned.
// The page counts these messages, and the word changes after them. So the coordinator grants no
// lease before it has heard them all, although the word is faster than the socket. Before an open
// the coordinator sends the slots (on_lane_table), and open_lane() maps them.
//
// A job stays out of its lane if it is of a gang, if lanes are off, or if its live memory was
// spilled since its last close. What may go wrong: the connection is lost with slots in use. Then
// those become the job's own (disconnect_lane), and the next Hello says which they are.
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

// Whether two descriptors are of one memfd: each message brings a new descriptor.
bool is_same_file(int a, int b) {
  struct stat first = {};
  struct stat second = {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

// Gives up the lane's memory and tells the coordinator. pre: the route is kOutside, and the word
// does not say yet that the lease is closed.
void Runtime::Impl::close_lane() {
  const bool has_lane = link_ == Link::kAttached && is_registered_ && page() != nullptr;
  // Shared memory cannot hold all that private memory can. Jobs that have to make room for each
  // other between their turns lack just that room. Ranks of a gang run at the same time, so they
  // cannot use the same slots.
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
  // Without a connection nothing is sent: the next Hello says it all.
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

// Turns all chunks of the lane into private ones. Their private use is counted anew from here.
void Runtime::Impl::stay_out_of_lane() {
  const std::size_t before = lane_chunks_.size();
  const Status status = lane_chunks_.stay_out();
  need_as_room(before - lane_chunks_.size());
  if (!status.ok()) log::warn("job {}: {}", address_.job.value, status.to_string());
}

// Maps the slots that the coordinator has named, or leaves the lane if there is none any more. Does
// nothing where all slots are as they were. pre: the lease is open, the route still kOutside.
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

// The lane has no slots for these chunks, so the next lease's room has to hold them.
void Runtime::Impl::need_as_room(std::size_t num_chunks) {
  counters_.shift_peaks(slots_of(num_chunks));
}

// A table counts as a Grant: a lease may name its number and waits for it (wait_until_granted). A
// table without its file breaks the rules, and the connection ends.
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

// The connection is gone, or about to be replaced. Slots that an open lease uses become this job's
// own; all others are left to the lane.
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

// The job has a coordinator again. The same one (by its epoch) still knows the job's slots.
void Runtime::Impl::adopt_lane(std::uint64_t epoch) {
  epoch_ = epoch;
  // With another coordinator nobody keeps the books of the old lane.
  if (epoch == lane_epoch_) return;
  lane_chunks_.forget_slots();
  drop_lane_files();
}

// Closes the files of lanes that are not used any more. The file of a coordinator that is gone
// holds its memory as long as anybody has it open.
void Runtime::Impl::drop_lane_files() {
  if (!lane_chunks_.has_forgotten()) lane_files_.clear();
}

// By how much this job's room differs from the room that the coordinator names in a Grant: the sum
// of changes that the coordinator had not heard of when it sent the Grant.
Bytes Runtime::Impl::unheard_lane_room(std::uint64_t heard) {
  auto& unheard = unheard_lane_changes_;
  unheard.erase(unheard.begin(), unheard.upper_bound(heard));
  Bytes sum;
  for (const auto& [n, room] : unheard)
    sum += room;
  return sum;
}

}  // namespace gpushare::client
