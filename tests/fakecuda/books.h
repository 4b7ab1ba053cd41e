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

// The descriptor keeps the extent alive; its file position is the extent's offset, which is how
// another process that is sent the descriptor finds out what it has got.
struct HeldExtent {
  Extent extent;
  UniqueFd fd;
};

struct ProcessUse {
  int pid = 0;
  uint64_t bytes = 0;
};

class Books {
 public:
  explicit Books(const Settings& settings);

  // Takes fresh bytes, poisoned. None: the device has not so many left.
  std::optional<HeldExtent> create(int device, uint64_t bytes);
  // Takes part in the extent of a descriptor that was sent here. None: it is no such descriptor.
  std::optional<HeldExtent> join(UniqueFd fd);
  // Takes part in an extent by its place in the file. None: it is gone.
  std::optional<HeldExtent> join_at(uint64_t offset);
  // This process has neither handle nor mapping of it any more; `fd` is closed. The extent is freed
  // unless others have it. pre: all mappings of it are undone. `was_shared`: a descriptor of it has
  // left this process, and may be alive somewhere.
  void leave(HeldExtent held, bool was_shared);

  // Takes the bytes of this process's context. False: the device has not so many left.
  bool add_context(int device);
  void remove_context(int device);

  uint64_t used(int device);
  uint64_t used_by(int device, int pid);
  std::vector<ProcessUse> processes(int device);
  uint64_t capacity() { return file_.header().capacity_bytes; }
  int num_devices() { return file_.header().num_devices; }

  // In the child of a fork: forgets all descriptors, so that it keeps nothing alive.
  void close_in_child();

 private:
  ExtentRecord* find(uint64_t offset);
  ExtentRecord* free_record();
  uint64_t used_locked(int device);
  uint64_t used_by_locked(int device, size_t process);
  std::optional<HeldExtent> join_locked(UniqueFd fd, uint64_t offset);
  void register_process();
  void reap_locked();
  void erase(ExtentRecord& record);

  DeviceFile file_;
  UniqueFd life_;       // holds the lock on our process record
  size_t process_ = 0;  // its number
};

}  // namespace fakecuda
