#include "tests/fakecuda/settings.h"

#include <cstdio>
#include <cstdlib>

namespace fakecuda {
namespace {

uint64_t number_or(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) {
    refuse(std::string(name) + "=" + text + ": not a number from " + std::to_string(least) +
           " to " + std::to_string(most));
  }
  return value;
}

std::string text_or_empty(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

}  // namespace

void refuse(const std::string& why) {
  std::fprintf(stderr, "fakecuda: %s\n", why.c_str());
  std::abort();
}

Settings read_settings() {
  Settings settings;
  settings.capacity_bytes =
      number_or("FAKECUDA_CAPACITY", settings.capacity_bytes, kGranularity, uint64_t{1} << 40);
  settings.num_devices = static_cast<int>(number_or("FAKECUDA_DEVICES", 1, 0, kMaxDevices));
  settings.device_file = text_or_empty("FAKECUDA_DEVICE_FILE");
  settings.context_bytes = number_or("FAKECUDA_CONTEXT_BYTES", 0, 0, settings.capacity_bytes);
  if (const std::string name = text_or_empty("FAKECUDA_NAME"); !name.empty()) settings.name = name;
  settings.driver_version =
      static_cast<int>(number_or("FAKECUDA_DRIVER_VERSION", 13000, 1000, 99990));
  settings.has_peers = number_or("FAKECUDA_PEERS", 0, 0, 1) == 1;
  settings.has_host_memory = number_or("FAKECUDA_HOST_NUMA", 1, 0, 1) == 1;
  settings.is_late = number_or("FAKECUDA_LATE", 0, 0, 1) == 1;
  settings.faults = text_or_empty("FAKECUDA_FAIL");
  return settings;
}

}  // namespace fakecuda
