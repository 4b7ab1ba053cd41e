// AddressRange owns addresses that a Vmm has reserved, and gives them back when it ends. It can be
// moved and not copied, so one owner gives them back once.
#include "csrc/vm/contract/vmm.h"

#include <utility>

namespace gpushare::vm {

// A range that was moved away from has no Vmm, and gives nothing back.
AddressRange::~AddressRange() {
  if (vmm_ != nullptr) vmm_->unreserve(base_, size_);
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : vmm_(std::exchange(other.vmm_, nullptr)),
      base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, Bytes{})) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  if (this != &other) {
    if (vmm_ != nullptr) vmm_->unreserve(base_, size_);
    vmm_ = std::exchange(other.vmm_, nullptr);
    base_ = std::exchange(other.base_, nullptr);
    size_ = std::exchange(other.size_, Bytes{});
  }
  return *this;
}

}  // namespace gpushare::vm
