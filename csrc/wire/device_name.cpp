// Which names of devices are accepted: "cpu", or "cuda:" with the UUID of a GPU or of a part of
// one. A name comes from a peer and may become part of a file's name, so nothing else passes, not
// even the same UUID in capitals.
#include "csrc/wire/device_name.h"

#include <cstddef>
#include <string_view>

namespace gpushare::wire {
namespace {

// 8-4-4-4-12 hexadecimal digits in lower case.
bool is_uuid(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_digit = kDigits.find(text[i]) != std::string_view::npos;
    if (kShape[i] == '-' ? text[i] != '-' : !is_digit) return false;
  }
  return true;
}

}  // namespace

// By the prefix alone, so that it may be asked of any text.
bool is_cuda(std::string_view name) { return name.starts_with(kCudaPrefix); }

bool is_device_name(std::string_view name) {
  if (!is_cuda(name)) return name == "cpu";
  const std::string_view part = name.substr(kCudaPrefix.size());
  const bool is_gpu = part.starts_with("GPU-") || part.starts_with("MIG-");
  return is_gpu && is_uuid(part.substr(4));
}

}  // namespace gpushare::wire
