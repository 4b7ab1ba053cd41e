// System calls that write into memory on the move, and are made again instead of failing.
//
// Which problem it solves: the kernel does not call a SIGSEGV handler when it is the one that
// writes. A thread that receives into a tensor (`recv_into`, `readinto`) while that tensor is moved
// gets EFAULT, which no program expects. So the calls that read into memory are led through this
// file in all loaded modules, from the first move on. EFAULT for memory that is held means: wait,
// and call again.
//
// Not covered: calls that no module imports (a system call instruction of its own), io_uring, and a
// datagram, which the kernel drops when it cannot be delivered.
#pragma once

namespace gpushare::vm {

// Call at the begin of each move. Cheap unless a module was loaded since the last one.
void take_over_calls();

}  // namespace gpushare::vm
