// Which names of devices are accepted: "cpu", "cpu:" with a number below 64 and without a leading
// zero, or "cuda:" with the UUID of a GPU or of a part of one. A name comes from a peer and may
// become part of a file's name, so nothing else passes, not even the same UUID in capitals.
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

// 0 to 63, so that one device has one name and a coordinator has few.
bool is_cpu_number(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() == 1) return is_digit(text[0]);
  return text.size() == 2 && text[0] >= '1' && text[0] <= '6' && is_digit(text[1]) && text <= "63";
}

}  // namespace

// By the prefix alone, so that it may be asked of any text.
bool is_cuda(std::string_view name) { return name.starts_with(kCudaPrefix); }

bool is_device_name(std::string_view name) {
  constexpr std::string_view kCpuPrefix = "cpu:";
  if (name.starts_with(kCpuPrefix)) return is_cpu_number(name.substr(kCpuPrefix.size()));
  if (!is_cuda(name)) return name == kAnyCpu;
  const std::string_view part = name.substr(kCudaPrefix.size());
  const bool is_gpu = part.starts_with("GPU-") || part.starts_with("MIG-");
  return is_gpu && is_uuid(part.substr(4));
}

}  // namespace gpushare::wire
