// The activity of this process and its children, from /proc. It tells an iteration that is held up
// from one that nobody will end (idle_rule.h).
#pragma once

#include <sys/types.h>

#include <string>

#include "csrc/base/units.h"

namespace gpushare::client {

// Processor time of this process, its living descendants, and those that have ended, so far. What
// /proc does not show counts as none, and of very many only the first are found.
Nanos cpu_of_process_tree();

// Whether another thread of this process runs, could run, or waits for a disk: it is at work,
// though it may get no processor time for a while.
bool has_thread_at_work();

// Whether the thread of this process is blocked until a person or an event comes: in epoll, as a
// notebook's kernel and an interactive shell are, or reading standard input. False where that
// cannot be told. Other waits (locks, peers, disks, child processes, sleep) end by themselves.
bool awaits_input(pid_t thread);
// Whether a line of /proc/PID/task/TID/syscall (proc(5)) says that the thread is blocked so.
bool is_wait_for_input(const std::string& line);

}  // namespace gpushare::client
