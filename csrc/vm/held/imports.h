// Functions that loaded modules (the program and its shared libraries) call in other modules, and
// how such calls are led to another function.
//
// A module calls a function of another one through a slot in its own memory, into which the dynamic
// linker has written the function's address (or will, at the first call). Writing another address
// there changes the calls of that module, without a word from it and without touching its code.
//
// Source: the System V ABI for x86-64 and AArch64, dl_iterate_phdr(3).
#pragma once

#include <cstdint>
#include <span>

namespace gpushare::vm {

struct Import {
  const char* name;
  // The function that the symbol means to us. A slot that holds another one is somebody else's, and
  // is left.
  void* original;
  void* replacement;
};

// How often a module was loaded in this process. A module counts from when it is listed, which may
// be before its slots are filled.
std::uint64_t num_module_loads();

// Leads the calls of all modules that are loaded, except the one that this function is in, to the
// replacements. Returns how many slots were changed. Slots that were changed before are left. Any
// thread may make the calls meanwhile: it calls the one function or the other.
int replace_imports(std::span<const Import> imports);

}  // namespace gpushare::vm
