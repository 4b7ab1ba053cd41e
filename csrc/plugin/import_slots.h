// Import slots of loaded libraries that call our functions instead of those they were linked to.
//
// Which problem it solves: torch's CUDA allocator calls cudaMalloc() itself. With its slot pointed
// at us we supply its segments, whatever torch's version, and nobody else's calls change.
//
// The old value of a slot is kept to be put back, and never called: of a function that was not
// called yet it is a stub that overwrites the slot. For the same reason a first call that is under
// way on another thread may undo a replacement; are_intact() sees that.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/plugin/loaded_library.h"

namespace gpushare::plugin {

struct SlotRequest {
  std::string importer;  // a library: what its file name ends in, "libc10_cuda.so"
  std::string symbol;
  void* function = nullptr;  // to be called from now on
  // Whether the library may be absent, and may do without the symbol.
  bool is_optional = false;
};

// Keeps the libraries loaded while it lives; the slots stay as they are when it goes. Move-only.
// threads: one at a time. Other threads may call through the slots at any time.
class ImportSlots {
 public:
  // Finds the slots and changes nothing. Each (library, symbol) has to have exactly one: with none
  // our function would not be called, with two the library would use addresses that we have no idea
  // of. errors: kFailedPrecondition, with library, symbol and the number.
  static Result<ImportSlots> find(std::span<const SlotRequest> requests);
  // Puts our functions into the slots that were found: into all or none. errors: kIo if a page
  // cannot be made writable. Some slots held our function for a moment then, so another thread may
  // have read its address and call it later.
  Status write();
  // find(), then write().
  static Result<ImportSlots> replace(std::span<const SlotRequest> requests);

  // Whether each slot still holds our function: another tool may have replaced it since.
  [[nodiscard]] bool are_intact() const;
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  // Puts the old values back, where ours are still in place.
  // errors: kFailedPrecondition, naming what somebody else has replaced since; kIo.
  Status restore();

 private:
  struct Replaced {
    SlotRequest request;
    ImportSlot slot;
    void* old_value = nullptr;
  };

  // Appends the request's slot, if it has one; changes nothing.
  Status find_slot(const SlotRequest& request);

  std::vector<LoadedLibrary> libraries_;
  std::vector<Replaced> slots_;
};

}  // namespace gpushare::plugin
