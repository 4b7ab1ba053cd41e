// torch's CPU allocator, ours: a c10::Allocator that forwards to alloc::CachingAllocator.
//
// Which problem it solves: every CPU tensor's memory comes through c10::GetAllocator(kCPU), so this
// is where a job's memory is budgeted and made movable. Installed once a process, and for good:
// oneDNN frees through whatever allocator is current, so taking it out again would free our blocks
// with free().
//
// A block's DataPtr has its address as context and one static deleter, so raw_allocate works and no
// heap context is made. Addresses that are not ours (older than us, or of a forked child) go to
// torch's default allocator.
//
// threads: any. Throws c10::OutOfMemoryError (torch.OutOfMemoryError), and on the main thread,
// while it waits for room, what a signal's handler raises: only there the GIL is taken
// (interrupts.h).
#pragma once

#include "csrc/alloc/allocator/caching_allocator.h"

namespace gpushare::binding {

// Makes `core` the memory of all CPU tensors from now on. Blocks that a forked child has inherited
// are never freed there.
// pre: called once a process; `core` is never destroyed.
void install_cpu_allocator(alloc::CachingAllocator& core);

// In a forked child: new memory comes from torch's default allocator, until the child installs an
// allocator of its own. Async-signal-safe.
void use_default_cpu_allocator();

}  // namespace gpushare::binding
