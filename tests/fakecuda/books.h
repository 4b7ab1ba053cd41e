// Who has how much of each device: the physical allocations of all processes that share it.
//
// Places are devices by their numbers in the file. A process may number them in another way, or see
// some of them only (CUDA_VISIBLE_DEVICES): what it creates and joins has its own numbers.
//
// One object a process. All methods are called under the process's own lock (call.h) and take the
// lock between processes themselves. Whoever looks also cleans up after the dead.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fakecuda/device_file.h"

namespace fakecuda {

// One physical allocation, as its holder has it.
struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  int device = 0;  // or kHostPlace
};

struct ProcessUse {
  int pid = 0;
  uint64_t bytes = 0;
};

class Books {
 public:
  explicit Books(const Settings& settings);

  // Takes fresh bytes, poisoned. None: the device has not so many left.
  std::optional<Extent> create(int device, uint64_t bytes);
  // A descriptor that keeps the extent alive, wherever it goes. Its file position is the extent's
  // place in the file, which is how another process finds out what it has been sent.
  UniqueFd export_fd(const Extent& extent);
  // Takes part in the extent of such a descriptor. None: it is none.
  std::optional<Extent> join(int fd);
  // Takes part in an extent by its place in the file. None: it is gone.
  std::optional<Extent> join_at(uint64_t offset);
  // This process has neither handle nor mapping of it any more. The extent is freed unless another
  // process holds it or a descriptor does.
  void leave(const Extent& extent);
  // The device file, to map extents of.
  [[nodiscard]] int fd() const { return file_.fd(); }

  // Takes the bytes of this process's context. False: the device has not so many left.
  bool add_context(int device);
  void remove_context(int device);

  uint64_t used(int place);
  uint64_t used_by(int place, int pid);
  std::vector<ProcessUse> processes(int place);
  uint64_t capacity() { return file_.header().capacity_bytes; }

  // From now on this process numbers these devices from 0, in their order, and has no others.
  void see(std::vector<int> devices) { seen_ = std::move(devices); }
  // The number in the books of a device, by this process's number of it.
  [[nodiscard]] int place_of(int device) const;
  [[nodiscard]] int num_seen() const { return static_cast<int>(seen_.size()); }

  // In the child of a fork: it can still look, but holds nothing and keeps nothing alive.
  void reopen_in_child();

 private:
  ExtentRecord* find(uint64_t offset);
  ExtentRecord* free_record();
  uint64_t used_locked(int place);
  uint64_t used_by_locked(int place, size_t process);
  std::optional<Extent> join_locked(uint64_t offset);
  void register_process();
  void reap_locked();
  void erase(ExtentRecord& record);

  DeviceFile file_;
  std::vector<int> seen_;  // by this process's numbers, the places
  UniqueFd life_;          // holds the lock on our process record
  size_t process_ = 0;     // its number
};

}  // namespace fakecuda
