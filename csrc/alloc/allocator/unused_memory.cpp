// Which chunks under torch's segments hold nothing, and how they are given up without a copy.
//
// note_use() marks chunks by what torch's snapshot says. A chunk that lies wholly in movable memory
// may move; any other must stay. A chunk that may move and that no used byte touches is unused.
// give_up_unused() takes the memory of those away, whole pieces only, a run of neighbours by one
// call. They become kSpilled without a slot: a restore backs them again and copies nothing. The
// marks hold only while the route is kOutside, since nothing new comes to lie in movable memory
// until the lease opens.
#include "csrc/alloc/allocator/unused_memory.h"

#include <algorithm>
#include <vector>

#include "csrc/alloc/allocator/pieces.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

// Spans that overlap no other, by address.
class Spans {
 public:
  explicit Spans(std::vector<ByteSpan> spans) : spans_(std::move(spans)) {
    std::sort(spans_.begin(), spans_.end(),
              [](const ByteSpan& a, const ByteSpan& b) { return a.address < b.address; });
  }
  // Whether a byte of the chunk at `address` lies in a span.
  [[nodiscard]] bool touch(const std::byte* address) const {
    const ByteSpan* const span = last_before(address + kChunkSize);
    return span != nullptr && span->end() > address;
  }
  // Whether one span holds the whole chunk.
  [[nodiscard]] bool cover(const std::byte* address) const {
    const ByteSpan* const span = last_before(address + 1);
    return span != nullptr && span->end() >= address + kChunkSize;
  }

 private:
  // The last that begins below `end`.
  [[nodiscard]] const ByteSpan* last_before(const std::byte* end) const {
    const auto after = std::lower_bound(
        spans_.begin(), spans_.end(), end,
        [](const ByteSpan& span, const std::byte* at) { return span.address < at; });
    return after == spans_.begin() ? nullptr : &*std::prev(after);
  }

  std::vector<ByteSpan> spans_;
};

// num_live counts blocks of this layer, which are torch's whole segments. So such a chunk is in use
// here, and holds nothing all the same.
bool is_unused(const Chunk& chunk) {
  return chunk.state == ChunkState::kResident && chunk.is_unused && chunk.num_live > 0 &&
         chunk.backing == Backing::kPrivate;
}

// kSpilled can only be reached through kSpilling, though nothing is copied.
Status give_up_run(AllocatorCore& core, const std::vector<ChunkRef>& unused, ChunkRange run)
    GS_REQUIRES(core.mu) {
  GS_RETURN_IF_ERROR(core.vmm.unback(unused[run.first].address(), chunks(run.size())));
  for (std::size_t i = run.first; i < run.last; ++i) {
    Chunk& chunk = unused[i].chunk();
    core.books.move(*unused[i].segment, chunk, ChunkState::kSpilling);
    chunk.slot = vm::kNoSlot;
    chunk.can_be_used = false;
    core.books.move(*unused[i].segment, chunk, ChunkState::kSpilled);
  }
  return {};
}

}  // namespace

// What torch said at the close of the lease, for each chunk under one of its segments.
void note_use(AllocatorCore& core, const MemoryUse& use) {
  core.has_noted_use = true;
  const Spans movable(use.movable);
  const Spans used(use.used);
  const auto mark = [&](const std::vector<ChunkRef>& found) {
    for (const ChunkRef& ref : found) {
      Chunk& chunk = ref.chunk();
      chunk.must_stay = !movable.cover(ref.address());
      chunk.is_unused = !chunk.must_stay && !used.touch(ref.address());
    }
  };
  mark(core.private_chunks([](const Chunk& chunk) { return chunk.num_live > 0; }));
  // Free chunks of the outside arena are marked as well: new blocks may come to lie over them
  // before the next lease.
  mark(core.chunks_of(Route::kOutside, [](const Chunk& chunk) { return chunk.has_backing(); }));
}

void forget_use(AllocatorCore& core) {
  core.has_noted_use = false;
  // The predicate finds nothing; it is called for each chunk.
  static_cast<void>(core.all_chunks([](Chunk& chunk) {
    chunk.must_stay = chunk.is_unused = false;
    return false;
  }));
}

// Stops at the first run that the device does not give up; what went before it stays given up.
DropOutcome give_up_unused(AllocatorCore& core, Bytes target) {
  DropOutcome outcome;
  std::vector<ChunkRef> unused =
      whole_pieces(core.vmm, core.all_chunks(is_unused), num_chunks(target), is_unused);
  if (unused.empty()) return outcome;
  std::sort(unused.begin(), unused.end(),
            [](const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); });
  core.empty_caches();  // so that they keep no block over those
  for (std::size_t first = 0; first < unused.size() && outcome.failure.ok();) {
    std::size_t last = first + 1;
    while (last < unused.size() &&
           unused[last].address() == unused[last - 1].address() + kChunkSize) {
      ++last;
    }
    outcome.failure = give_up_run(core, unused, {first, last});
    if (outcome.failure.ok()) outcome.dropped += chunks(last - first);
    first = last;
  }
  if (!outcome.failure.ok()) {
    log::warn("unused memory could not be given up: {}", outcome.failure.to_string());
  }
  outcome.lowered = core.books.lower_room(outcome.dropped);
  core.recount_all();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return outcome;
}

}  // namespace gpushare::alloc
