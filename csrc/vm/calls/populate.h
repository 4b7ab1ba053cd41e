// Giving pages to accessible memory now instead of at first touch, so that lack of memory is an
// error of a call and not a signal later.
#pragma once

#include <cstddef>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::vm {

// pre: the range is mapped readable and writable. post: each page of it is populated; bytes keep
// their values. errors: kOutOfMemory, kIo; some pages may be populated then. On kernels before 5.14
// each page is touched instead, and lack of memory is met as the kernel pleases.
Status populate_now(std::byte* address, Bytes size);

}  // namespace gpushare::vm
