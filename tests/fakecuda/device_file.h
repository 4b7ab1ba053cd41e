// The file that is the fake devices' memory, and the books over it.
//
//     | header: processes, extents | extent | extent | hole | extent ...
//
// An extent is one physical allocation. The books say which processes hold it. What they cannot say
// is who has a descriptor of it: that may be in a socket, or with a process that knows no CUDA. So
// the locks of the file system say it. An exported descriptor is an open file description of its
// own with a read lock on the extent's bytes, and the kernel keeps both until the last copy of the
// descriptor is closed anywhere. In the same way a process is alive as long as its record's bytes
// are locked, however it ends. (Locks of descriptions, F_OFD_SETLK, are not the older locks of
// processes: those are lost by closing any descriptor of the file.)
//
// The books' own lock is a write lock on the file's first byte, which a dying process cannot keep
// either. Each update is published by one last store, so that a process killed in between leaves no
// half of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/unique_fd.h"

#include "tests/fakecuda/settings.h"

namespace fakecuda {

using gpushare::UniqueFd;

inline constexpr size_t kMaxProcesses = 64;
inline constexpr size_t kMaxExtents = 32768;
// Physical memory of the host (CU_MEM_LOCATION_TYPE_HOST...): in the file, but on no device.
inline constexpr int kHostPlace = -1;

struct ProcessRecord {
  int32_t pid;        // 0: a free record
  uint32_t contexts;  // bit n: it has a context on device n
};

struct ExtentRecord {
  uint64_t bytes;  // 0: a free record. Stored last, cleared first.
  uint64_t offset;
  uint64_t holders;  // bit n: process n has a handle or a mapping
  int32_t device;
  uint32_t unused;
};

struct Header {
  uint64_t magic;  // stored last by the process that makes the file
  uint64_t capacity_bytes;
  uint64_t context_bytes;
  uint64_t next_offset;  // extents get new places in the file; holes are punched behind them
  int32_t num_devices;
  uint32_t num_extents;  // records used so far: the length of the part to look at
  ProcessRecord processes[kMaxProcesses];
  ExtentRecord extents[kMaxExtents];
};

class DeviceFile {
 public:
  // Opens the file, or makes it; without a name, an anonymous one. Ends the process if the file was
  // made for devices of another size.
  explicit DeviceFile(const Settings& settings);
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  // The books' lock, against other processes; threads have the caller's.
  void lock();
  void unlock();

  [[nodiscard]] Header& header() { return *header_; }

  // For mappings and the bytes themselves.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // A new description of the file with a read lock on these bytes.
  [[nodiscard]] UniqueFd open_locked(uint64_t offset, uint64_t bytes) const;
  // Whether `fd` is a description of this file.
  [[nodiscard]] bool is_ours(int fd) const;
  // Whether any description in any process has a lock on these bytes.
  [[nodiscard]] bool is_locked(uint64_t offset, uint64_t bytes) const;
  // Makes room for an extent at the end of the file. False: the file system is full.
  bool extend_to(uint64_t end);
  // Gives an extent's bytes back to the file system.
  void punch(uint64_t offset, uint64_t bytes);
  // The child of a fork shares its parent's description, which it must not keep alive, and has not
  // its mapping. It gets its own of both.
  void reopen_in_child();

 private:
  void map_header();

  UniqueFd fd_;
  Header* header_ = nullptr;
};

}  // namespace fakecuda
