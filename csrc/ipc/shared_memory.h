// A sealed memfd and its mapping: memory for two processes whose size neither can change.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::ipc {

class SharedMemory {
 public:
  // Zeroed, sealed against growing, shrinking and further seals. errors: kIo.
  static Result<SharedMemory> create(const std::string& name, Bytes size);
  // Maps a peer's descriptor. errors: kProtocol if it is not a memfd sealed so, or smaller than
  // `size`.
  static Result<SharedMemory> attach(UniqueFd fd, Bytes size);

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool is_valid() const { return data_ != nullptr; }

 private:
  SharedMemory(UniqueFd fd, void* data, Bytes size);
  UniqueFd fd_;
  void* data_ = nullptr;
  Bytes size_;
};

}  // namespace gpushare::ipc
