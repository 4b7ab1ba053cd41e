#include "tests/fakecuda/memory.h"

namespace fakecuda {

Kind Memory::kind_of(uintptr_t address) const {
  if (const auto mapping = addresses.mapping_at(address); mapping && mapping->second.is_on_host) {
    return Kind::kPinned;
  }
  if (plain.find(address).second != nullptr || addresses.is_reserved(address)) {
    return Kind::kDevice;
  }
  return host.find(address) ? Kind::kPinned : Kind::kPageable;
}

Kind Memory::kind_of(Range range) const {
  const Kind kind = kind_of(range.begin);
  if (addresses.is_reserved(range.begin)) return kind;
  return kind == Kind::kPinned && !host.covers(range) ? Kind::kPageable : kind;
}

bool Memory::is_accessible(Range range, bool is_write, bool by_device) const {
  if (const auto [found, allocation] = plain.find(range.begin); allocation != nullptr) {
    return found.contains(range);
  }
  if (addresses.is_reserved(range.begin))
    return addresses.is_accessible(range, is_write, by_device);
  return true;
}

Range Memory::whole(uintptr_t address) const {
  if (const auto [range, allocation] = plain.find(address); allocation != nullptr) return range;
  const auto mapping = addresses.mapping_at(address);
  return mapping ? mapping->first : Range{};
}

int Memory::device_of(uintptr_t address) {
  if (const auto [range, allocation] = plain.find(address); allocation != nullptr) {
    return allocation->extent.device;
  }
  const auto mapping = addresses.mapping_at(address);
  return mapping ? physical.find(mapping->second.handle)->extent.device : -1;
}

}  // namespace fakecuda
