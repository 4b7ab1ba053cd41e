// The contract of device memory: address space is reserved once, backing comes and goes under it.
//
// Common to all functions. pre: addresses and sizes are multiples of kChunkBytes, size > 0, and the
// range lies inside one reservation. errors: kOutOfMemory, kIo; after an error nothing has changed.
// threads: any, on disjoint ranges; the caller keeps two calls on one range apart.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/host_place.h"

namespace gpushare::vm {

// The unit of backing, of residency and of the books.
inline constexpr Bytes kChunkBytes = mib(2);

class Vmm;

// Reserved address space, given back by its destructor. Move-only.
class AddressRange {
 public:
  AddressRange() = default;
  AddressRange(Vmm* vmm, std::byte* base, Bytes size) : vmm_(vmm), base_(base), size_(size) {}
  ~AddressRange();
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] bool contains(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= base_ && byte < base_ + size_.to_size();
  }

 private:
  Vmm* vmm_ = nullptr;
  std::byte* base_ = nullptr;
  Bytes size_;
};

class Vmm {
 public:
  virtual ~Vmm() = default;

  // Address space without memory: access faults. Aligned to kChunkBytes.
  virtual Result<AddressRange> reserve(Bytes size) = 0;
  // Physical memory under the range, populated now: the device's own figure rises by `size`. It is
  // zeroed where the CPU is the device; on a GPU its contents are unspecified, but never another
  // process's. pre: unbacked.
  virtual Status back(std::byte* address, Bytes size) = 0;
  // Gives the memory back; the contents are lost, access faults again, the device's figure falls by
  // `size`. Of a file's memory its part of the file is given back. pre: backed, all of it by back()
  // or all of it by map_shared(); whole pieces.
  virtual Status unback(std::byte* address, Bytes size) = 0;

  // A piece leaves the device as a whole: the device takes the memory back only so. Pieces are made
  // by back() and back_aside(), inside the range that is backed.
  struct Piece {
    const std::byte* address = nullptr;
    Bytes size = kChunkBytes;
  };
  // pre: backed.
  [[nodiscard]] virtual Piece piece_of(const std::byte* address) const { return {address}; }
  [[nodiscard]] virtual Bytes most_piece() const { return kChunkBytes; }
  // Whether a piece may be more than a chunk.
  [[nodiscard]] bool is_in_pieces() const { return most_piece() > kChunkBytes; }

  // Whether several processes can share memory of this device, by the functions below.
  [[nodiscard]] virtual bool can_share() const { return true; }
  // Memory that several processes share: a file of the device's memory (on a machine without a GPU
  // a memfd), `offset` bytes into it. Populated now, contents as they are. A forked child does not
  // get the mapping. `file` stays open while anything is mapped from it. pre: unbacked. errors:
  // kFailedPrecondition where can_share() is false, of the four functions below too.
  virtual Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) = 0;
  // The mapping goes, the file keeps its bytes; access faults. pre: mapped by map_shared().
  virtual Status unmap_shared(std::byte* address, Bytes size) = 0;
  // Access faults, the mapping and its bytes stay; and access is as before again. pre: mapped by
  // map_shared(); before anything else is done with the range, access is allowed again or the
  // mapping goes.
  virtual Status forbid_access(std::byte* address, Bytes size) = 0;
  virtual Status allow_access(std::byte* address, Bytes size) = 0;
  // The same bytes at the same address, from now on in memory of this process alone, as if it came
  // from back(); their part of the file is given back. Writers wait, as for freeze(). pre: mapped
  // by map_shared().
  virtual Status make_private(std::byte* address, Bytes size) = 0;

  // Whether threads may go on using memory while it moves, as the functions below promise. If not,
  // as on a GPU, nothing may use it meanwhile: such access may fault, and what it writes be lost.
  [[nodiscard]] virtual bool traps_writers() const { return true; }

  // Spilling. Nothing here changes a byte, and a reader of the range never faults nor waits long.
  //
  // Writers to the range wait, until thaw() or whatever takes the backing away. A write by a system
  // call fails meanwhile. pre: backed.
  virtual Status freeze(std::byte* address, Bytes size) = 0;
  virtual void thaw(std::byte* address, Bytes size) = 0;
  // As unback(), and in the same step the addresses show the host tier's bytes at `place`, to be
  // read and written there. Where that cannot be had, access faults. pre: backed, whole pieces; the
  // same bytes are at `place`.
  virtual Status unback_showing(std::byte* address, Bytes size, const HostPlace& place) = 0;
  // Unbacked addresses show the host tier's bytes at `place`, to be read and written there, until
  // hide(), or until bring_in() puts memory in their place. pre: unbacked, shows nothing. errors:
  // also kFailedPrecondition: this machine cannot.
  virtual Status show(std::byte* address, Bytes size, const HostPlace& place) = 0;
  // Whether each chunk of the range shows host bytes: it can be used, slowly.
  [[nodiscard]] virtual bool shows(const std::byte* address, Bytes size) const = 0;
  // Access faults again where host bytes were shown; elsewhere nothing changes. (Backing such
  // addresses ends it too.) Takes ranges of unbacked and backed chunks.
  virtual Status hide(std::byte* address, Bytes size) = 0;

  // Restoring. First: what was launched before has written what it writes to addresses that show
  // host bytes. For all addresses, and once, since it may wait for copies as well.
  virtual Status settle_shown() { return {}; }
  // Then physical memory for the range, populated now, but elsewhere: at aside(address),
  // where it is filled, until bring_in() puts it in place in one step. Writers to what the range
  // shows wait meanwhile. Where nothing is shown aside() may be the address itself. pre: unbacked,
  // and what aside() says of neighbours are neighbours; each of the three others takes a range as
  // it was backed.
  virtual Status back_aside(std::byte* address, Bytes size) = 0;
  [[nodiscard]] virtual std::byte* aside(std::byte* address) = 0;
  // post: backed.
  virtual Status bring_in(std::byte* address, Bytes size) = 0;
  // Gives that memory back unused. Cannot fail, so that a failed restore can always be undone.
  virtual void unback_aside(std::byte* address, Bytes size) = 0;

  // Between backed device memory (or memory aside) and ordinary host memory. Synchronous: the mover
  // calls these.
  virtual Status copy_out(const std::byte* device, std::byte* host, Bytes size) = 0;
  virtual Status copy_in(const std::byte* host, std::byte* device, Bytes size) = 0;
  // Whether the CPU may read and write backed memory directly: a copy to a file then needs no
  // staging.
  [[nodiscard]] virtual bool is_host_accessible() const { return false; }

 private:
  friend class AddressRange;
  virtual void unreserve(std::byte* base, Bytes size) = 0;
};

}  // namespace gpushare::vm
