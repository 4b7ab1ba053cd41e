// Copies of chunks past the caches.
//
// Which problem it solves: a chunk that leaves the device, or comes back, is larger than the caches
// and is not used soon. A copy of its size through them reads each line of the destination before
// it writes it, and drives out what others have there. Stores past the caches do neither.
#pragma once

#include <cstddef>

namespace gpushare::vm {

// As memcpy(to, from, size). Another thread that learns of the copy through a lock or an atomic
// sees its bytes.
void streaming_copy(std::byte* to, const std::byte* from, std::size_t size);

}  // namespace gpushare::vm
