#include "tests/cpp/support/vm_smaps.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace gpushare::testing {

KernelFigures kernel_figures_of(const std::byte* base, Bytes size) {
  const auto low = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t high = low + size.to_size();
  KernelFigures figures;
  bool is_inside = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    std::int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2) {
      is_inside = first < high && last > low;
      figures.num_mappings += is_inside ? 1 : 0;
    } else if (is_inside && std::sscanf(line.c_str(), "Rss: %" SCNd64 " kB", &kibibytes) == 1) {
      figures.rss += kib(kibibytes);
    }
  }
  return figures;
}

}  // namespace gpushare::testing
