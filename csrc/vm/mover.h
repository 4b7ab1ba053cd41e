// The mover: one thread that carries out copies in the order they were submitted.
//
// submit() returns a ticket at once; wait(ticket) blocks until that copy, and so all before it, is
// done, and returns its own status. So the caller can queue a whole spill and do something else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "csrc/base/status.h"

namespace gpushare::vm {

struct Ticket {
  std::uint64_t value = 0;
};

class Mover {
 public:
  Mover();
  // Waits for what was submitted, unless the process is exiting or this is a forked child.
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  Ticket submit(std::function<Status()> copy);
  // pre: each ticket is waited for exactly once.
  Status wait(Ticket ticket);

  // The child has no mover thread: it is started again by the first submit (which a child never
  // does).
  void after_fork_in_child();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::vm
