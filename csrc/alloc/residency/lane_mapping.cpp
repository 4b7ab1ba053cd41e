// How lane chunks are mapped, taken away, made inaccessible and given up, in as few calls as
// possible.
//
// A run is a row of chunks with neighbouring addresses that one call can treat alike. For a mapping
// the slots must be neighbours too; for memory that is given up the backing must be the same, since
// private and shared memory are given up differently. The books of a run change after its call, so
// a failure leaves them true.
#include "csrc/alloc/residency/lane_mapping.h"

#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

// Mapped at once: new memory comes at 1 to 4 GiB/s.
constexpr std::size_t kChunksAtOnce = 4;

bool is_any(std::size_t /*index*/) { return true; }

// Runs of chunks with neighbouring addresses, each for one system call. `is_next(i)` may end a run
// where chunk i does not belong to the one before it.
template <typename IsNext>
std::vector<ChunkRange> runs_of(const ChunkRefs& refs, IsNext is_next) {
  std::vector<ChunkRange> runs;
  for (std::size_t first = 0; first < refs.size();) {
    std::size_t last = first + 1;
    while (last < refs.size() && refs[last].address() == refs[last - 1].address() + kChunkSize &&
           is_next(last)) {
      ++last;
    }
    runs.push_back({first, last});
    first = last;
  }
  return runs;
}

}  // namespace

Status map_slots(AllocatorCore& core,
                 const ChunkRefs& refs,
                 const std::vector<std::uint32_t>& slots,
                 int file,
                 const Ends& ends) {
  const auto portions = runs_of(
      refs, [&](std::size_t i) { return slots[i] == slots[i - 1] + 1 && i % kChunksAtOnce != 0; });
  for (const ChunkRange& run : portions) {
    if (run.first > 0 && ends && ends()) {
      return {StatusCode::kCancelled, "the lease is asked for"};
    }
    GS_RETURN_IF_ERROR(core.vmm.map_shared(refs[run.first].address(), chunks(run.size()), file,
                                           chunks(slots[run.first])));
    for (std::size_t i = run.first; i < run.last; ++i) {
      core.books.move(*refs[i].segment, refs[i].chunk(), ChunkState::kResident);
      refs[i].chunk().lane_slot = slots[i];
    }
  }
  return {};
}

Status unmap_slots(AllocatorCore& core, const ChunkRefs& mapped) {
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    GS_RETURN_IF_ERROR(core.vmm.unmap_shared(mapped[run.first].address(), chunks(run.size())));
    for (std::size_t i = run.first; i < run.last; ++i) {
      Chunk& chunk = mapped[i].chunk();
      GS_CHECK(chunk.num_live == 0, "a lane chunk with {} live blocks", chunk.num_live);
      core.books.move(*mapped[i].segment, chunk, ChunkState::kUnbacked);
      chunk.lane_slot = kNoLaneSlot;
    }
  }
  return {};
}

void forbid_slots(AllocatorCore& core, const ChunkRefs& mapped) {
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    const Status status = core.vmm.forbid_access(mapped[run.first].address(), chunks(run.size()));
    if (!status.ok()) log::warn("shared memory stays readable: {}", status.to_string());
  }
}

Status allow_slots(AllocatorCore& core, const ChunkRefs& mapped) {
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    GS_RETURN_IF_ERROR(core.vmm.allow_access(mapped[run.first].address(), chunks(run.size())));
  }
  return {};
}

Bytes give_up_memory(AllocatorCore& core, const ChunkRefs& free, ChunkRefs& members) {
  const auto runs = runs_of(
      free, [&](std::size_t i) { return free[i].chunk().backing == free[i - 1].chunk().backing; });
  Bytes lowered;
  for (const ChunkRange& run : runs) {
    const Status status = core.vmm.unback(free[run.first].address(), chunks(run.size()));
    if (!status.ok()) {
      log::warn("free memory could not be shared: {}", status.to_string());
      break;
    }
    for (std::size_t i = run.first; i < run.last; ++i) {
      core.books.move(*free[i].segment, free[i].chunk(), ChunkState::kUnbacked);
      free[i].chunk().backing = Backing::kLane;
      members.push_back(free[i]);
    }
    lowered += core.books.lower_room(chunks(run.size()));
  }
  return lowered;
}

}  // namespace gpushare::alloc
