// Who has how much of each device: the physical allocations of all processes that share it.
//
// One object a process. All methods are called under the process's own lock (call.h) and take the
// lock between processes themselves. Whoever looks also cleans up after the dead.
#pragma once

#include <cstdint>
#include <optional>
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

  uint64_t used(int device);
  uint64_t used_by(int device, int pid);
  std::vector<ProcessUse> processes(int device);
  uint64_t capacity() { return file_.header().capacity_bytes; }
  int num_devices() { return file_.header().num_devices; }

  // In the child of a fork: it can still look, but holds nothing and keeps nothing alive.
  void reopen_in_child();

 private:
  ExtentRecord* find(uint64_t offset);
  ExtentRecord* free_record();
  uint64_t used_locked(int device);
  uint64_t used_by_locked(int device, size_t process);
  std::optional<Extent> join_locked(uint64_t offset);
  void register_process();
  void reap_locked();
  void erase(ExtentRecord& record);

  DeviceFile file_;
  UniqueFd life_;       // holds the lock on our process record
  size_t process_ = 0;  // its number
};

}  // namespace fakecuda
