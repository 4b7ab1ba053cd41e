// Writers that wait while their chunk is on the move, instead of being lost or killed.
//
// Which problem it solves: while a chunk's bytes are copied, a write by some thread of the user (a
// background thread with a tensor) would be in one copy only. The owner makes the pages read-only;
// the write faults, and this SIGSEGV handler lets the thread sleep in small steps and try again
// until the move is over.
//
// A handler is the process's, so the ranges it knows are too. It is put on top of whatever handler
// is there when a move begins, and passes on to that one every fault that is no business of ours.
// The handler takes no lock and allocates nothing. A thread that is held may hold the user's locks,
// the GIL too: whoever moves chunks must need none of them, and must not write to the chunks'
// addresses.
//
// Writes by system calls on the user's behalf: see held_calls.h.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::vm {

class HeldWrites {
 public:
  // The range's chunks; at most some dozens of ranges at once in a process, others are not watched.
  HeldWrites(const std::byte* base, Bytes size);
  ~HeldWrites();
  HeldWrites(const HeldWrites&) = delete;
  HeldWrites& operator=(const HeldWrites&) = delete;

  // Call before the pages become read-only, and after they are writable again (or gone).
  void hold(const std::byte* address, Bytes size);
  void let_go(const std::byte* address, Bytes size);

  // Whether a fault in the range is one that a move has caused, or may have until a moment ago.
  [[nodiscard]] bool may_be_held(const std::byte* address, std::size_t size) const;

 private:
  static constexpr std::int64_t kHeld = -1;
  void set_all(const std::byte* address, Bytes size, std::int64_t value);

  const std::byte* const base_;
  const std::size_t num_chunks_;
  // By chunk: kHeld; else when the last move ended, or 0. release and acquire: whoever sees a move
  // ended sees its pages as they are then.
  std::atomic<std::int64_t>* ended_ns_ = nullptr;
};

// How long a thread sleeps between two tries: 0.2 ms.
inline constexpr timespec kBetweenTries{.tv_sec = 0, .tv_nsec = 200'000};

// Whether may_be_held() is true of any HeldWrites of the process. Takes no lock and allocates
// nothing.
bool any_may_be_held(const std::byte* address, std::size_t size);

}  // namespace gpushare::vm
