// Ends a coordinator that gets no memory from the system, with one line that says why.
//
// Which problem it solves: `prlimit --as` on the running process, or a low `ulimit -v` of the shell
// that started it, refuses memory at any moment. An allocation that fails in the middle of a
// decision cannot be undone, so the process would end by an uncaught exception, without a word.
// When it ends, its jobs go on and start the next coordinator, as after any other end.
#pragma once

namespace gpushare::daemon {

// From now on, for the whole process and all its threads. Called once, before anything else.
void end_clearly_without_memory();

}  // namespace gpushare::daemon
