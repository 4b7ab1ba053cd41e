// Finds the import slots of a loaded library in its ELF structures.
//
// The way is: program header PT_DYNAMIC, then the dynamic section, then two relocation tables. Each
// entry of these tables names a symbol and the address of a slot. An entry is an import slot of
// `symbol` if its type is JUMP_SLOT or GLOB_DAT, and if the symbol is undefined in the library
// itself. The structures are those that the loader has mapped, so no file is read.
//
// What may go wrong: a slot may lie on a page that the loader has made read-only (RELRO).
// write_slot() makes the page writable for the moment of the write.
#include "csrc/plugin/loaded_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace gpushare::plugin {
namespace {

using Address = ElfW(Addr);
using Symbol = ElfW(Sym);
using Relocation = ElfW(Rela);
using DynamicEntry = ElfW(Dyn);
using Header = ElfW(Phdr);

#if defined(__x86_64__)
constexpr std::uint64_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr std::uint64_t kGlobDat = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint64_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr std::uint64_t kGlobDat = R_AARCH64_GLOB_DAT;
#else
#error "the relocation types of import slots are known for x86-64 and aarch64"
#endif

// The loader gives addresses as numbers; this makes a pointer of one.
template <typename T>
T* at(Address address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr): there is no pointer
}

Address page_of(Address address) {
  return address & ~(static_cast<Address>(::sysconf(_SC_PAGESIZE)) - 1);
}

// The parts of the dynamic section that concern imports.
struct Imports {
  const Symbol* symbols = nullptr;
  const char* names = nullptr;
  // The table of the procedure linkage table (JUMP_SLOT), and that of all other relocations
  // (GLOB_DAT).
  std::array<std::span<const Relocation>, 2> relocations;
};

std::span<const Relocation> table_at(const void* address, std::uint64_t bytes) {
  return {static_cast<const Relocation*>(address),
          address == nullptr ? 0 : bytes / sizeof(Relocation)};
}

// The entries of the dynamic section come in no order, so addresses and sizes are collected first
// and joined at the end. `locate` turns a pointer of the section into an address.
template <typename Locate>
Imports read_imports(const DynamicEntry* dynamic, const Locate& locate) {
  Imports imports;
  std::array<const void*, 2> tables{};
  std::array<std::uint64_t, 2> sizes{};
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        imports.symbols = static_cast<const Symbol*>(locate(dynamic->d_un.d_ptr));
        break;
      case DT_STRTAB: imports.names = static_cast<const char*>(locate(dynamic->d_un.d_ptr)); break;
      case DT_JMPREL: tables[0] = locate(dynamic->d_un.d_ptr); break;
      case DT_PLTRELSZ: sizes[0] = dynamic->d_un.d_val; break;
      case DT_RELA: tables[1] = locate(dynamic->d_un.d_ptr); break;
      case DT_RELASZ: sizes[1] = dynamic->d_un.d_val; break;
      default: break;
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i)
    imports.relocations.at(i) = table_at(tables.at(i), sizes.at(i));
  return imports;
}

bool is_import_of(const Imports& imports, const Relocation& relocation, std::string_view symbol) {
  const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);
  if (type != kJumpSlot && type != kGlobDat) return false;
  const Symbol& entry = imports.symbols[ELF64_R_SYM(relocation.r_info)];
  return entry.st_shndx == SHN_UNDEF && symbol == imports.names + entry.st_name;
}

Status protect(Address page, int protection) {
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (::mprotect(at<void>(page), size, protection) == 0) return {};
  return errno_status(fmt::format("change the access of the import slots' page at {:#x}", page));
}

}  // namespace

void* read_slot(const ImportSlot& slot) {
  // acquire; pairs with the release in write_slot.
  return std::atomic_ref<void*>(*slot.address).load(std::memory_order_acquire);
}

// Other threads may call through the slot meanwhile. The store is atomic, so they see the old or
// the new function.
Status write_slot(const ImportSlot& slot, void* value) {
  const Address page = page_of(reinterpret_cast<Address>(slot.address));
  if (slot.is_read_only) GS_RETURN_IF_ERROR(protect(page, PROT_READ | PROT_WRITE));
  std::atomic_ref<void*>(*slot.address).store(value, std::memory_order_release);
  return slot.is_read_only ? protect(page, PROT_READ) : Status();
}

void LoadedLibrary::Close::operator()(void* handle) const { ::dlclose(handle); }

LoadedLibrary::LoadedLibrary(const dl_phdr_info& info)
    : path_(info.dlpi_name),
      base_(info.dlpi_addr),
      headers_(info.dlpi_phdr, info.dlpi_phdr + info.dlpi_phnum) {}

std::vector<LoadedLibrary> LoadedLibrary::find_all(
    const std::function<bool(const std::string& path)>& is_wanted) {
  std::vector<LoadedLibrary> loaded;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* all) {
        static_cast<std::vector<LoadedLibrary>*>(all)->push_back(LoadedLibrary(*info));
        return 0;
      },
      &loaded);
  std::erase_if(loaded, [&](const LoadedLibrary& library) { return !is_wanted(library.path_); });
  // Not in the walk: it holds a lock of the loader's that dlopen() takes after another one.
  for (LoadedLibrary& library : loaded)
    library.handle_.reset(::dlopen(library.path_.c_str(), RTLD_LAZY | RTLD_NOLOAD));
  // Another thread may have unloaded a library since the walk: dlopen() with RTLD_NOLOAD then
  // returns null.
  std::erase_if(loaded, [](const LoadedLibrary& library) { return library.handle_ == nullptr; });
  return loaded;
}

// The address that a pointer of the dynamic section stands for. glibc overwrites the section's
// offsets with addresses, other C libraries leave offsets. A value inside one of the library's
// loaded ranges is taken for an address.
const void* LoadedLibrary::locate(Address pointer) const {
  for (const Header& header : headers_) {
    const Address start = base_ + header.p_vaddr;
    if (header.p_type == PT_LOAD && pointer >= start && pointer - start < header.p_memsz) {
      return at<const void>(pointer);
    }
  }
  return at<const void>(base_ + pointer);
}

bool LoadedLibrary::is_read_only(Address address) const {
  for (const Header& header : headers_) {
    if (header.p_type != PT_GNU_RELRO) continue;
    const Address start = base_ + header.p_vaddr;
    // As in the loader, whole pages count. The last page stays writable if other data shares it.
    return address >= page_of(start) && address < page_of(start + header.p_memsz);
  }
  return false;
}

std::vector<ImportSlot> LoadedLibrary::slots_of(std::string_view symbol) const {
  std::vector<ImportSlot> slots;
  for (const Header& header : headers_) {
    if (header.p_type != PT_DYNAMIC) continue;
    const Imports imports = read_imports(at<const DynamicEntry>(base_ + header.p_vaddr),
                                         [this](Address pointer) { return locate(pointer); });
    if (imports.symbols == nullptr || imports.names == nullptr) continue;  // imports nothing
    for (const std::span<const Relocation> table : imports.relocations) {
      for (const Relocation& relocation : table) {
        if (!is_import_of(imports, relocation, symbol)) continue;
        const Address address = base_ + relocation.r_offset;
        slots.push_back({at<void*>(address), is_read_only(address)});
      }
    }
  }
  return slots;
}

}  // namespace gpushare::plugin
