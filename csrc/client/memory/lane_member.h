// A job's part in its lane: its lane chunks, the slots that it was told, and what the coordinator
// has heard of its changes. lane_chunks.h has what happens to memory, wire/messages.h the messages.
//
// Which problem it solves: job and coordinator keep the same books of a pool, and their messages
// cross. So each change has a number, and a Grant names the last change that it includes. The room
// of later changes is added to what the Grant says (unheard_room). Files and slots belong to one
// coordinator, which is known by its epoch. After a restart the old file stays open while chunks
// are mapped from it.
//
// What it does not do: it sends nothing, and decides nothing about when the job has a lane. The
// owner's lock keeps calls apart. Those that change memory have the conditions of lane_chunks.h.
//
// Invariants: the numbers in unheard_ are at most num_changes_; slots_ and the last of files_ came
// from the coordinator of epoch_.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "csrc/alloc/residency/lane_chunks.h"
#include "csrc/base/own_file.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::client {

class LaneMember {
 public:
  // `left`: bytes of chunks that are lane chunks no more. The room of the next lease has to hold
  // them.
  struct Outcome {
    Status status;
    Bytes left;
  };

  // `allocator` must outlive it.
  explicit LaneMember(alloc::CachingAllocator& allocator) : chunks_(allocator) {}

  // A lease closes. Whether live memory was spilled between the close before and the last
  // note_open(). Each of the two calls is told the total of spilled bytes so far.
  bool take_spilled_in_gap(Bytes spilled_so_far);
  // A lease opens.
  void note_open(Bytes spilled_so_far) { was_spilled_in_gap_ = spilled_so_far > spilled_at_close_; }

  alloc::LaneChange close(const alloc::LaneChunks::CloseOptions& options) {
    return chunks_.close(options);
  }
  // By how much a change changes the job's room.
  [[nodiscard]] static Bytes room_of(const alloc::LaneChange& change);
  // Counts a message about `change`, and returns its number. Empty: the coordinator need not hear
  // of it, since slots, room and the number of chunks are as they were.
  std::optional<std::uint64_t> count_change(const alloc::LaneChange& change);
  // Maps the slots that were told. Without a lane, or before its table has come, all chunks become
  // private ones.
  Outcome open(bool has_lane, const alloc::Ends& ends = {});
  // All lane chunks become private ones. stay_out(): the job stays a member of the lane. leave():
  // it has no more iterations.
  Outcome stay_out();
  Outcome leave();

  // The coordinator of `epoch` has told the lane's slots. A descriptor of the file in use is
  // closed.
  void on_table(std::vector<std::uint32_t> slots, UniqueFd file, std::uint64_t epoch);
  // The connection is gone, or about to be replaced. Slots that an open lease uses become this
  // job's own; all others are left to the lane.
  Outcome on_disconnect(bool is_open);
  // The job has the coordinator of `epoch`. The one that it had before still knows the job's slots.
  // With another one nobody keeps the books of the old lane.
  void adopt(std::uint64_t epoch);
  // No coordinator follows.
  void forget();
  // Closes the files of lanes that are not used any more, if the coordinator is another one now.
  void drop_old_files(std::uint64_t epoch);
  void make_live_private() { chunks_.make_live_private(); }

  // By how much the job's room differs from what the coordinator says that has heard of changes up
  // to `heard`. Those are forgotten.
  Bytes unheard_room(std::uint64_t heard);
  [[nodiscard]] std::size_t num_chunks() const { return chunks_.size(); }
  // Counted on this connection.
  [[nodiscard]] std::uint64_t num_changes() const { return num_changes_; }
  // The slots that the job keeps, and the epoch of the coordinator whose lane they are from: for
  // Hello.
  [[nodiscard]] std::vector<std::uint32_t> kept_slots() const { return chunks_.donated_slots(); }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

 private:
  // `before` lane chunks there were; those that are none now are what is left.
  [[nodiscard]] Outcome outcome(Status status, std::size_t before) const;
  void drop_files();

  alloc::LaneChunks chunks_;
  std::uint64_t epoch_ = 0;
  // The last is in use. Older ones stay open while chunks are mapped from them.
  std::vector<OwnFile> files_;
  std::vector<std::uint32_t> slots_;
  Bytes spilled_at_close_;  // in all, then
  bool was_spilled_in_gap_ = false;
  std::size_t num_chunks_told_ = 0;
  std::uint64_t num_changes_ = 0;
  // By how much each change has changed room, for those that no Grant is known to include.
  std::map<std::uint64_t, Bytes> unheard_;
};

}  // namespace gpushare::client
