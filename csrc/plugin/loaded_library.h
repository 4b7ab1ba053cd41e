// A library that is loaded in this process, and the slots through which it calls what it imports.
//
// A shared library calls a function of another one through a pointer in its own memory, an import
// slot, which the loader fills. A JUMP_SLOT is filled at the first call, or at load; a GLOB_DAT
// always at load. Where all are filled at load the pages they lie on may be read-only since
// (RELRO).
#pragma once

#include <link.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::plugin {

struct ImportSlot {
  void** address = nullptr;
  bool is_read_only = false;
};

// Puts `value` into the slot, whose page is writable for that moment only. errors: kIo; the slot
// may then hold `value`.
// threads: any that call through the slot meanwhile see the old or the new value.
Status write_slot(const ImportSlot& slot, void* value);
[[nodiscard]] void* read_slot(const ImportSlot& slot);

// Keeps the library loaded while it lives. Move-only.
class LoadedLibrary {
 public:
  // Those whose path `is_wanted` accepts, in the order in which they were loaded.
  static std::vector<LoadedLibrary> find_all(
      const std::function<bool(const std::string& path)>& is_wanted);

  [[nodiscard]] const std::string& path() const { return path_; }
  // For dlsym(): this library and what it was linked against.
  [[nodiscard]] void* handle() const { return handle_.get(); }
  // Slots of a function that the library does not define itself.
  [[nodiscard]] std::vector<ImportSlot> slots_of(std::string_view symbol) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  explicit LoadedLibrary(const dl_phdr_info& info);

  [[nodiscard]] const void* locate(ElfW(Addr) pointer) const;
  [[nodiscard]] bool is_read_only(ElfW(Addr) address) const;

  std::string path_;
  ElfW(Addr) base_;
  std::vector<ElfW(Phdr)> headers_;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace gpushare::plugin
