// A device's UUID: as different as the files that are the devices' memory, so that tests which run
// at the same time have devices of their own. Without a file the device is the process's.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fakecuda {

inline std::array<unsigned char, 16> uuid_of(int device) {
  const char* const file = std::getenv("FAKECUDA_DEVICE_FILE");
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : std::string_view(file == nullptr ? "" : file))
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  if (file == nullptr || *file == '\0') hash ^= static_cast<std::uint64_t>(::getpid());
  std::array<unsigned char, 16> bytes;
  bytes.fill(0xfa);
  for (std::size_t i = 0; i < sizeof(hash); ++i)
    bytes.at(7 + i) = static_cast<unsigned char>(hash >> (8 * i));
  bytes.back() = static_cast<unsigned char>(device + 1);
  return bytes;
}

// As NVML and nvidia-smi write it.
inline std::string uuid_text(int device) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto bytes = uuid_of(device);
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[bytes.at(i) / 16];
    text += kHex[bytes.at(i) % 16];
  }
  return text;
}

}  // namespace fakecuda
