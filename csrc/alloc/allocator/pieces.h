// Which chunks can leave together, on a device that takes memory back only in pieces
// (vm/contract/vmm.h).
//
// Which problem it solves: residency is of chunks, and some devices' memory goes by the piece. So
// who gives chunks up names those it wants to give, and gets whole pieces; where chunks are
// independent, those very chunks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"

namespace gpushare::alloc {

// The chunks of the piece in which the one at `index` lies. pre: it is backed.
inline ChunkRange piece_around(const vm::Vmm& vmm, const Segment& segment, std::size_t index) {
  if (!vmm.is_in_pieces()) return {index, index + 1};
  const vm::Vmm::Piece piece = vmm.piece_of(segment.address_of(index));
  const auto before = static_cast<std::size_t>(segment.address_of(index) - piece.address);
  const std::size_t first = index - before / kChunkSize;
  return {first, first + num_chunks(piece.size)};
}

template <typename Predicate>
bool all_of(ChunkRange range, Predicate predicate) {
  for (std::size_t i = range.first; i < range.last; ++i)
    if (!predicate(i)) return false;
  return true;
}

// The pieces of `wanted`, in that order, of which `may_go(chunk)` holds for each chunk, until they
// have `most` chunks or more. Where chunks are independent: the first `most`. pre: all are backed.
template <typename MayGo>
std::vector<ChunkRef> whole_pieces(const vm::Vmm& vmm,
                                   std::vector<ChunkRef> wanted,
                                   std::size_t most,
                                   MayGo may_go) {
  if (!vmm.is_in_pieces()) {
    wanted.resize(std::min(wanted.size(), most));
    return wanted;
  }
  std::vector<ChunkRef> chosen;
  std::unordered_set<const std::byte*> seen;  // pieces, by their first chunk
  const Segment* segment = nullptr;           // of the last piece looked at
  ChunkRange piece;
  for (const ChunkRef& ref : wanted) {
    if (chosen.size() >= most) break;
    if (ref.segment == segment && piece.contains(ref.index)) continue;
    segment = ref.segment;
    piece = piece_around(vmm, *segment, ref.index);
    if (!seen.insert(segment->address_of(piece.first)).second) continue;
    if (!all_of(piece, [&](std::size_t i) { return may_go(ref.segment->chunk(i)); })) continue;
    for (std::size_t i = piece.first; i < piece.last; ++i)
      chosen.push_back({ref.segment, i});
  }
  return chosen;
}

}  // namespace gpushare::alloc
