// A Vmm that passes everything on and remembers the range it was last asked to reserve: the one
// that all segments of this process lie in. Measurements compare it with the kernel's figures.
#pragma once

#include <cstddef>
#include <utility>

#include "csrc/vm/vmm.h"

namespace gpushare::binding {

class RangeRecorder final : public vm::Vmm {
 public:
  // `inner` must outlive it.
  explicit RangeRecorder(vm::Vmm& inner) : inner_(inner) {}

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] Bytes size() const { return size_; }

  Result<vm::AddressRange> reserve(Bytes size) override {
    Result<vm::AddressRange> range = inner_.reserve(size);
    if (range) {
      base_ = range->base();
      size_ = range->size();
    }
    return range;
  }
  Status back(std::byte* address, Bytes size) override { return inner_.back(address, size); }
  Status unback(std::byte* address, Bytes size) override { return inner_.unback(address, size); }
  Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) override {
    return inner_.map_shared(address, size, file, offset);
  }
  Status unmap_shared(std::byte* address, Bytes size) override {
    return inner_.unmap_shared(address, size);
  }
  Status forbid_access(std::byte* address, Bytes size) override {
    return inner_.forbid_access(address, size);
  }
  Status allow_access(std::byte* address, Bytes size) override {
    return inner_.allow_access(address, size);
  }
  Status make_private(std::byte* address, Bytes size) override {
    return inner_.make_private(address, size);
  }
  Status freeze(std::byte* address, Bytes size) override { return inner_.freeze(address, size); }
  void thaw(std::byte* address, Bytes size) override { inner_.thaw(address, size); }
  Status unback_showing(std::byte* address, Bytes size, const vm::HostPlace& place) override {
    return inner_.unback_showing(address, size, place);
  }
  Status show(std::byte* address, Bytes size, const vm::HostPlace& place) override {
    return inner_.show(address, size, place);
  }
  [[nodiscard]] bool shows(const std::byte* address, Bytes size) const override {
    return inner_.shows(address, size);
  }
  Status hide(std::byte* address, Bytes size) override { return inner_.hide(address, size); }
  Status back_aside(std::byte* address, Bytes size) override {
    return inner_.back_aside(address, size);
  }
  [[nodiscard]] std::byte* aside(std::byte* address) override { return inner_.aside(address); }
  Status bring_in(std::byte* address, Bytes size) override {
    return inner_.bring_in(address, size);
  }
  void unback_aside(std::byte* address, Bytes size) override { inner_.unback_aside(address, size); }
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override {
    return inner_.copy_out(device, host, size);
  }
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override {
    return inner_.copy_in(host, device, size);
  }
  [[nodiscard]] bool is_host_accessible() const override { return inner_.is_host_accessible(); }

 private:
  // Ranges are made by, and go back to, the inner one.
  void unreserve(std::byte*, Bytes) override {}

  vm::Vmm& inner_;
  std::byte* base_ = nullptr;
  Bytes size_;
};

}  // namespace gpushare::binding
