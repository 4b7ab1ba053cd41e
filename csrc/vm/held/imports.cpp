// Every module lists its slots in its dynamic section: those for calls in DT_JMPREL, and those that
// hold an address for any use (also for calls, where code was compiled without a PLT) in DT_RELA.
// Each entry names a symbol, whose name is compared with those asked for.
//
// A slot is changed only if it holds the address of the original, or was not used yet. Any other
// value is the work of somebody else, another interposer for one, and is left. Pages of slots that
// the linker has made read-only are made writable for the one store. A failure costs that slot, not
// the process.
#include "csrc/vm/held/imports.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "csrc/base/log.h"
#include "csrc/base/status.h"

namespace gpushare::vm {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kCallSlot = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kAddressSlot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kCallSlot = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kAddressSlot = R_AARCH64_GLOB_DAT;
#else
#error "the relocations of this processor are not known"
#endif

using Address = ElfW(Addr);

struct Span {
  Address begin = 0;
  Address end = 0;
  [[nodiscard]] bool contains(Address address) const { return address >= begin && address < end; }
};

// One loaded library or program, as the linker describes it. It reads the module's own tables and
// owns nothing.
class Module {
 public:
  explicit Module(const dl_phdr_info& info) : info_(info) {
    for (const auto& header : headers()) {
      if (header.p_type == PT_DYNAMIC) read_dynamic(info.dlpi_addr + header.p_vaddr);
      if (header.p_type == PT_GNU_RELRO) read_only_ = whole_pages(header);
    }
  }

  [[nodiscard]] bool contains(Address address) const {
    for (const auto& header : headers()) {
      const Address begin = info_.dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_LOAD && Span{begin, begin + header.p_memsz}.contains(address)) {
        return true;
      }
    }
    return false;
  }

  // Returns how many slots lead to a replacement now that did not before.
  int replace(std::span<const Import> imports) const {
    if (symbols_ == nullptr || names_ == nullptr) return 0;
    int replaced = 0;
    for (const auto& slots : {call_slots_, other_slots_}) {
      for (const auto& slot : slots)
        replaced += replace(slot, imports);
    }
    return replaced;
  }

 private:
  using Slots = std::span<const ElfW(Rela)>;

  [[nodiscard]] std::span<const ElfW(Phdr)> headers() const {
    return {info_.dlpi_phdr, info_.dlpi_phnum};
  }

  // The part that the linker makes read-only once it has filled the slots. A page that it fills
  // only at its end stays writable.
  [[nodiscard]] Span whole_pages(const ElfW(Phdr) & header) const {
    const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
    const Address begin = info_.dlpi_addr + header.p_vaddr;
    return {begin / page * page, (begin + header.p_memsz) / page * page};
  }

  // Finds the symbols, their names and the two lists of slots.
  void read_dynamic(Address section) {
    std::size_t relative = 0;
    Address calls = 0;
    Address others = 0;
    std::size_t size_of_calls = 0;
    std::size_t size_of_others = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(section);
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB: symbols_ = pointer<ElfW(Sym)>(entry->d_un.d_ptr); break;
        case DT_STRTAB: names_ = pointer<char>(entry->d_un.d_ptr); break;
        case DT_JMPREL: calls = entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: size_of_calls = entry->d_un.d_val; break;
        case DT_RELA: others = entry->d_un.d_ptr; break;
        case DT_RELASZ: size_of_others = entry->d_un.d_val; break;
        case DT_RELACOUNT: relative = entry->d_un.d_val; break;
        default: break;
      }
    }
    call_slots_ = {pointer<ElfW(Rela)>(calls), size_of_calls / sizeof(ElfW(Rela))};
    other_slots_ = {pointer<ElfW(Rela)>(others), size_of_others / sizeof(ElfW(Rela))};
    // Slots without a symbol come first in that list, and are most of it.
    other_slots_ = other_slots_.subspan(std::min(relative, other_slots_.size()));
  }

  // glibc has added the module's address to most of these entries, but not to all.
  template <typename T>
  [[nodiscard]] const T* pointer(Address address) const {
    if (address < info_.dlpi_addr) address += info_.dlpi_addr;
    return reinterpret_cast<const T*>(address);
  }

  int replace(const ElfW(Rela) & slot, std::span<const Import> imports) const {
    const std::uint32_t type = ELF64_R_TYPE(slot.r_info);
    if (type != kCallSlot && type != kAddressSlot) return 0;
    const auto& symbol = symbols_[ELF64_R_SYM(slot.r_info)];
    const char* const name = names_ + symbol.st_name;
    for (const Import& import : imports) {
      if (*name != *import.name || std::strcmp(name, import.name) != 0) continue;
      auto* const at = reinterpret_cast<Address*>(info_.dlpi_addr + slot.r_offset);
      const Address now = std::atomic_ref(*at).load(std::memory_order_relaxed);
      // A slot for calls that was not used yet leads back into its own module, to code that calls
      // the linker. A module that defines a function of that name itself also leads there, but that
      // is another function, which the symbol's section tells.
      const bool is_unused = type == kCallSlot && contains(now) && symbol.st_shndx == SHN_UNDEF;
      if (now != reinterpret_cast<Address>(import.original) && !is_unused) return 0;
      return write(at, reinterpret_cast<Address>(import.replacement)) ? 1 : 0;
    }
    return 0;
  }

  // A failure is a line at debug level: the calls of that module then go where they went.
  bool write(Address* at, Address value) const {
    const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
    const Address address = reinterpret_cast<Address>(at);
    void* const start = reinterpret_cast<void*>(address / page * page);
    const bool is_read_only = read_only_.contains(address);
    if (is_read_only && ::mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
      log::debug("{}", errno_status("make an import slot writable").message());
      return false;
    }
    // In one store: a thread that calls through the slot just now reads the old address or the new
    // one.
    std::atomic_ref(*at).store(value, std::memory_order_release);
    if (is_read_only && ::mprotect(start, page, PROT_READ) != 0) {
      log::debug("{}", errno_status("make an import slot read-only again").message());
    }
    return true;
  }

  const dl_phdr_info info_;
  Span read_only_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Slots call_slots_;
  Slots other_slots_;
};

struct Asked {
  std::span<const Import> imports;
  int replaced = 0;
};

// The module of this file is left out: its wrappers have to reach libc itself.
int replace_in(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& asked = *static_cast<Asked*>(data);
  const Module module(*info);
  if (module.contains(reinterpret_cast<Address>(&replace_in))) return 0;
  asked.replaced += module.replace(asked.imports);
  return 0;
}

}  // namespace

// Grows with each module that is loaded, so that a caller can find out cheaply whether there are
// new slots.
std::uint64_t num_module_loads() {
  std::uint64_t loads = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<std::uint64_t*>(data) = info->dlpi_adds;
        return 1;  // each entry says the same
      },
      &loads);
  return loads;
}

int replace_imports(std::span<const Import> imports) {
  Asked asked{imports};
  ::dl_iterate_phdr(replace_in, &asked);
  return asked.replaced;
}

}  // namespace gpushare::vm
