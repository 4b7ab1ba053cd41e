// All memory that the fake device knows, and what kind an address is of.
#pragma once

#include "tests/fakecuda/address_space.h"
#include "tests/fakecuda/books.h"
#include "tests/fakecuda/host_memory.h"
#include "tests/fakecuda/physical.h"
#include "tests/fakecuda/plain_memory.h"

namespace fakecuda {

enum class Kind {
  kPageable,  // the host's own; also what nobody knows
  kPinned,    // the host's too, allocated or registered here, or of the host's physical memory
  kDevice,    // allocated or reserved here, with something behind it or not
};

struct Memory {
  Memory(Books& books, bool has_host_memory)
      : physical(books, has_host_memory), addresses(physical), plain(books) {}

  [[nodiscard]] Kind kind_of(uintptr_t address) const;
  // Pinned only if all of it is.
  [[nodiscard]] Kind kind_of(Range range) const;
  // Whether the device may read or write all of it; or, as far as it is the host's physical memory,
  // the CPU. Other host memory: always, that is the host's affair.
  [[nodiscard]] bool is_accessible(Range range, bool is_write, bool by_device) const;
  // The allocation or mapping a device address lies in. Empty: none.
  [[nodiscard]] Range whole(uintptr_t address) const;
  // The device a device address belongs to; -1: none, or nothing is mapped there.
  [[nodiscard]] int device_of(uintptr_t address);

  PhysicalMemory physical;
  AddressSpace addresses;
  PlainMemory plain;
  HostMemory host;
};

}  // namespace fakecuda
