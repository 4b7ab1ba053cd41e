// The books of a job's lane. A change is counted when its message is about to be sent, and it is
// forgotten when a Grant includes it or the connection ends: the next Hello says all there is.
//
// Files are kept by need. Each table brings a descriptor, mostly of the file that is in use
// already. The file of a coordinator that is gone holds its memory as long as anybody has it open,
// so it is closed as soon as no chunk is mapped from it.
#include "csrc/client/memory/lane_member.h"

#include <sys/stat.h>

#include <utility>

#include "csrc/wire/limits.h"

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

bool LaneMember::take_spilled_in_gap(Bytes spilled_so_far) {
  spilled_at_close_ = spilled_so_far;
  return std::exchange(was_spilled_in_gap_, false);
}

// A slot that the job keeps becomes its room; what it gave to the pool is room no longer.
Bytes LaneMember::room_of(const alloc::LaneChange& change) {
  return slots_of(change.donated.size()) - change.given;
}

std::optional<std::uint64_t> LaneMember::count_change(const alloc::LaneChange& change) {
  const Bytes room = room_of(change);
  const bool is_news = room != Bytes{} || !change.donated.empty() || !change.returned.empty() ||
                       chunks_.size() != num_chunks_told_;
  if (!is_news) return std::nullopt;
  num_chunks_told_ = chunks_.size();
  unheard_[++num_changes_] = room;
  return num_changes_;
}

LaneMember::Outcome LaneMember::open(bool has_lane, const alloc::Ends& ends) {
  const std::size_t before = chunks_.size();
  if (before == 0) return {};
  Status status = has_lane && !files_.empty() ? chunks_.open(files_.back().get(), slots_, ends)
                                              : chunks_.leave();
  return outcome(std::move(status), before);
}

LaneMember::Outcome LaneMember::stay_out() {
  const std::size_t before = chunks_.size();
  return outcome(chunks_.stay_out(), before);
}

LaneMember::Outcome LaneMember::leave() {
  const std::size_t before = chunks_.size();
  num_chunks_told_ = 0;
  return outcome(chunks_.leave(), before);
}

void LaneMember::on_table(std::vector<std::uint32_t> slots, UniqueFd file, std::uint64_t epoch) {
  drop_old_files(epoch);
  if (files_.empty() || !is_same_file(file.get(), files_.back().get())) {
    files_.emplace_back(std::move(file));
  }
  epoch_ = epoch;
  slots_ = std::move(slots);
}

LaneMember::Outcome LaneMember::on_disconnect(bool is_open) {
  const std::size_t before = chunks_.size();
  slots_.clear();
  num_chunks_told_ = 0;
  num_changes_ = 0;
  unheard_.clear();
  return outcome(chunks_.on_disconnect(is_open), before);
}

void LaneMember::adopt(std::uint64_t epoch) {
  if (epoch != epoch_) forget();
}

void LaneMember::forget() {
  chunks_.forget_slots();
  drop_files();
}

void LaneMember::drop_old_files(std::uint64_t epoch) {
  if (epoch != epoch_) drop_files();
}

void LaneMember::drop_files() {
  if (!chunks_.has_forgotten()) files_.clear();
}

Bytes LaneMember::unheard_room(std::uint64_t heard) {
  unheard_.erase(unheard_.begin(), unheard_.upper_bound(heard));
  Bytes sum;
  for (const auto& [n, room] : unheard_)
    sum += room;
  return sum;
}

LaneMember::Outcome LaneMember::outcome(Status status, std::size_t before) const {
  return {.status = std::move(status), .left = slots_of(before - chunks_.size())};
}

}  // namespace gpushare::client
