// How much address space may be reserved at once, where `ulimit -v` bounds that of the process.
#pragma once

#include "csrc/base/units.h"

namespace gpushare::vm {

// `wanted`, or where the process' address space is limited an eighth of that limit, in whole
// chunks: a range is reserved twice (host_vmm.h), and the program needs most of it.
Bytes address_space_for(Bytes wanted);

}  // namespace gpushare::vm
