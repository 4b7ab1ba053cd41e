// Shared by the Vmms' files: checks, texts, and system calls on whole chunks with the errors that
// they become.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::vm {

// Aborts if the range is not whole chunks: that is our own bug.
void check_whole_chunks(const std::byte* address, Bytes size);
// "verb 2 MiB at 0x7f..".
std::string describe(const char* verb, const std::byte* address, Bytes size);
// The Status for errno. ENOMEM is kOutOfMemory, and names the limit on the number of mappings.
Status mapping_status(const std::string& what);
// Replaces what is mapped there by fresh private memory. MAP_FAILED, with errno.
void* map_anonymous(std::byte* address, Bytes size, int protection);
void ask_for_huge_pages(std::byte* address, Bytes size);

}  // namespace gpushare::vm
