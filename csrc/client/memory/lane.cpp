// Lanes: what the job tells the coordinator of them, and the slots that it is told. lane_member.h
// has the books, lane_chunks.h what happens to memory, messages.h the rules.
//
// At a close the job says what has changed (close_lane): room given up, slots kept, slots returned.
// The page counts these messages, and the word changes after them. So the coordinator grants no
// lease before it has heard them all, although the word is faster than the socket. Before an open
// the coordinator sends the slots (on_lane_table), and open_lane() maps them.
//
// A job stays out of its lane if it is of a gang, if lanes are off, or if its live memory was
// spilled since its last close. What may go wrong: the connection is lost with slots in use. Then
// those become the job's own (disconnect_lane), and the next Hello says which they are.
#include <optional>
#include <string>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

// Gives up the lane's memory and tells the coordinator. pre: the route is kOutside, and the word
// does not say yet that the lease is closed.
void Runtime::Impl::close_lane() {
  const bool has_lane = link_.is_attached() && registration_.is_registered() && page() != nullptr;
  const bool was_spilled = lane_.take_spilled_in_gap(residency_.totals().spilled);
  // Shared memory cannot hold all that private memory can. Jobs that have to make room for each
  // other between their turns lack just that room. Ranks of a gang run at the same time, so they
  // cannot use the same slots.
  const bool stays_out = was_spilled || !link_.address().gang.empty() || !config_.lanes;
  const bool may_promote = has_lane && !stays_out && page()->num_sharing.load(kRelaxed) > 1;
  alloc::LaneChange change = lane_.close(
      {.may_promote = may_promote, .scrub = config_.lane_scrub, .is_strict = config_.lane_strict});
  room_ += LaneMember::room_of(change);
  counters_.shift_peaks(Bytes{} - change.given);
  if (stays_out) stay_out_of_lane();
  lane_.drop_old_files(link_.epoch());
  // Without a connection nothing is sent: the next Hello says it all.
  if (has_lane) tell_lane(std::move(change));
}

void Runtime::Impl::tell_lane(alloc::LaneChange change) {
  const std::optional<std::uint64_t> n = lane_.count_change(change);
  if (!n.has_value()) return;
  log::debug("job {}: {} given up for its lane, {} slots kept, {} returned, {} chunks",
             link_.job().value, to_string(change.given), change.donated.size(),
             change.returned.size(), lane_.num_chunks());
  publish_usage(*page());
  // relaxed: the change of the word, in finish_close, publishes it.
  page()->lane_changes.store(*n, kRelaxed);
  send(wire::LaneChanged{.of = link_.address(),
                         .n = *n,
                         .given = change.given,
                         .num_chunks = lane_.num_chunks(),
                         .donated = std::move(change.donated),
                         .returned = std::move(change.returned)});
}

// Turns all chunks of the lane into private ones. Their private use is counted anew from here.
void Runtime::Impl::stay_out_of_lane() {
  const LaneMember::Outcome out = lane_.stay_out();
  need_as_room(out.left);
  if (!out.status.ok()) log::warn("job {}: {}", link_.job().value, out.status.to_string());
}

// Maps the slots that the coordinator has named, or leaves the lane if there is none any more. Does
// nothing where all slots are as they were. pre: the lease is open, the route still kOutside.
// errors: kCancelled: a job that cannot wait is to have the lease. The first time that jobs share
// much memory this takes long, and no safepoint has come yet.
Status Runtime::Impl::open_lane() {
  lane_.note_open(residency_.totals().spilled);
  LaneMember::Outcome opened = lane_.open(page() != nullptr && link_.address().gang.empty(),
                                          [this] { return is_asked_inside(); });
  need_as_room(opened.left);
  return std::move(opened.status);
}

// The lane has no slots for these chunks, so the next lease's room has to hold them.
void Runtime::Impl::need_as_room(Bytes left) { counters_.shift_peaks(left); }

// A table counts as a Grant: a lease may name its number and waits for it (wait_until_granted). A
// table without its file breaks the rules, and the connection ends.
void Runtime::Impl::on_lane_table(wire::LaneTable table, std::vector<UniqueFd> fds) {
  MutexLock lock(mu_);
  if (fds.size() != 1) {
    log::warn("job {}: a lane's table with {} descriptors", link_.job().value, fds.size());
    link_.connection().shut_down();
    return;
  }
  lane_.on_table(std::move(table.slots), std::move(fds[0]), link_.epoch());
  needs_.on_grant(table.n, 0);
  changed_.notify_all();
}

// The connection is gone, or about to be replaced.
void Runtime::Impl::disconnect_lane() {
  const bool is_open = !fast_.is_closed();
  const LaneMember::Outcome gone = lane_.on_disconnect(is_open);
  need_as_room(gone.left);
  if (!gone.status.ok()) log::error("job {}: {}", link_.job().value, gone.status.to_string());
}

}  // namespace gpushare::client
