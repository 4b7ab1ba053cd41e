// Training loops as strings of events, and the state machine's answers as text.
//
//   F E    a training forward, an evaluation forward      f g  a forward begins, ends
//   S T    steps of two optimizers                        s    a step inside the backward
//   [ ]    an outer optimizer's step begins, ends (a closure, SAM)
//   U J    GradScaler.update, job.step()                  ( )  an explicit iteration
//   X      an exception leaves the iteration              h    an evaluation forward ends
//   < >    an evaluation forward on another thread begins, ends
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/watch/boundaries.h"

namespace gpushare::watch {

// pre: `event` is one of the above.
Decision apply(Boundaries& machine, char event);

// What the machine answers to each event: "", "begin", "end KIND", "end KIND, begin". A star after
// the kind says that an optimizer stepped. Blanks are no events.
std::vector<std::string> play(Boundaries& machine, std::string_view events);

// The same with one sign for each event: - nothing, b begin, e end, x end and begin.
std::string boundaries_in(Boundaries& machine, std::string_view events);

}  // namespace gpushare::watch
