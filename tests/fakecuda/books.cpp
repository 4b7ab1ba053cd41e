#include "tests/fakecuda/books.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace fakecuda {
namespace {

// Fresh memory holds this, so that nobody relies on zeroes.
constexpr unsigned char kPoison = 0xa5;

uint64_t bit(size_t process) { return uint64_t{1} << process; }

uint64_t offset_of_process(size_t process) {
  return offsetof(Header, processes) + process * sizeof(ProcessRecord);
}

// False: the file system is full.
bool poison(int fd, const Extent& extent) {
  static const std::vector<unsigned char> bytes(kGranularity, kPoison);
  for (uint64_t done = 0; done < extent.bytes;) {
    const uint64_t part = std::min<uint64_t>(bytes.size(), extent.bytes - done);
    const ssize_t written =
        pwrite(fd, bytes.data(), part, static_cast<off_t>(extent.offset + done));
    if (written <= 0) return false;
    done += static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace

Books::Books(const Settings& settings) : file_(settings) { register_process(); }

void Books::register_process() {
  const std::lock_guard lock(file_);
  reap_locked();
  auto& processes = file_.header().processes;
  const auto* record = std::find_if(std::begin(processes), std::end(processes),
                                    [](const ProcessRecord& process) { return process.pid == 0; });
  if (record == std::end(processes)) refuse("too many processes share the device file");
  process_ = static_cast<size_t>(record - processes);
  life_ = file_.open_again();
  lock_extent(life_.get(), offset_of_process(process_), sizeof(ProcessRecord));
  processes[process_] = {static_cast<int32_t>(getpid()), 0};
}

void Books::reap_locked() {
  Header& header = file_.header();
  uint64_t alive = 0;
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    if (header.processes[i].pid == 0) continue;
    if (file_.is_locked(offset_of_process(i), sizeof(ProcessRecord))) {
      alive |= bit(i);
    } else {
      header.processes[i] = {};
    }
  }
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    ExtentRecord& record = header.extents[i];
    if (record.bytes == 0) continue;
    record.holders &= alive;
    // Without a holder it may still be in a socket, or with a process that only keeps descriptors.
    if (record.holders == 0 && !file_.is_locked(record.offset, record.bytes)) erase(record);
  }
}

void Books::erase(ExtentRecord& record) {
  const uint64_t bytes = record.bytes;
  record.bytes = 0;
  file_.punch(record.offset, bytes);
}

ExtentRecord* Books::find(uint64_t offset) {
  Header& header = file_.header();
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    ExtentRecord& record = header.extents[i];
    if (record.bytes != 0 && record.offset == offset) return &record;
  }
  return nullptr;
}

ExtentRecord* Books::free_record() {
  Header& header = file_.header();
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    if (header.extents[i].bytes == 0) return &header.extents[i];
  }
  if (header.num_extents == kMaxExtents) refuse("too many physical allocations");
  return &header.extents[header.num_extents++];
}

std::optional<HeldExtent> Books::create(int device, uint64_t bytes) {
  const std::lock_guard lock(file_);
  reap_locked();
  Header& header = file_.header();
  if (device != kHostPlace && used_locked(device) + bytes > header.capacity_bytes) return {};
  HeldExtent held{{header.next_offset, bytes, device}, file_.open_again()};
  const uint64_t end = held.extent.offset + bytes;
  if (!file_.extend_to(end)) return {};
  header.next_offset = (end + kGranularity - 1) / kGranularity * kGranularity;
  if (!poison(held.fd.get(), held.extent)) {
    file_.punch(held.extent.offset, bytes);
    return {};
  }
  lock_extent(held.fd.get(), held.extent.offset, bytes);
  lseek(held.fd.get(), static_cast<off_t>(held.extent.offset), SEEK_SET);
  ExtentRecord& record = *free_record();
  record.offset = held.extent.offset;
  record.device = device;
  record.holders = bit(process_);
  record.bytes = bytes;
  return held;
}

std::optional<HeldExtent> Books::join_locked(UniqueFd fd, uint64_t offset) {
  ExtentRecord* record = find(offset);
  if (record == nullptr) return {};
  record->holders |= bit(process_);
  return HeldExtent{{offset, record->bytes, record->device}, std::move(fd)};
}

std::optional<HeldExtent> Books::join(UniqueFd fd) {
  if (!file_.is_ours(fd.get())) return {};
  const off_t offset = lseek(fd.get(), 0, SEEK_CUR);
  const std::lock_guard lock(file_);
  return join_locked(std::move(fd), static_cast<uint64_t>(offset));
}

std::optional<HeldExtent> Books::join_at(uint64_t offset) {
  const std::lock_guard lock(file_);
  reap_locked();
  std::optional<HeldExtent> held = join_locked(file_.open_again(), offset);
  if (held) lock_extent(held->fd.get(), held->extent.offset, held->extent.bytes);
  return held;
}

void Books::leave(HeldExtent held, bool was_shared) {
  const std::lock_guard lock(file_);
  // A child between fork and exec has a copy of the descriptor; nobody else can have one.
  if (!was_shared) unlock_extent(held.fd.get(), held.extent.offset, held.extent.bytes);
  held.fd.reset();
  ExtentRecord* record = find(held.extent.offset);
  if (record == nullptr) return;
  record->holders &= ~bit(process_);
  if (record->holders == 0 && !file_.is_locked(record->offset, record->bytes)) erase(*record);
}

bool Books::add_context(int device) {
  const std::lock_guard lock(file_);
  reap_locked();
  Header& header = file_.header();
  if (used_locked(device) + header.context_bytes > header.capacity_bytes) return false;
  header.processes[process_].contexts |= uint32_t{1} << device;
  return true;
}

void Books::remove_context(int device) {
  const std::lock_guard lock(file_);
  file_.header().processes[process_].contexts &= ~(uint32_t{1} << device);
}

uint64_t Books::used_locked(int device) {
  const Header& header = file_.header();
  uint64_t used = 0;
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    if (header.extents[i].device == device) used += header.extents[i].bytes;
  }
  for (const ProcessRecord& process : header.processes) {
    if (process.contexts >> device & 1) used += header.context_bytes;
  }
  return used;
}

uint64_t Books::used_by_locked(int device, size_t process) {
  const Header& header = file_.header();
  uint64_t used = header.processes[process].contexts >> device & 1 ? header.context_bytes : 0;
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    const ExtentRecord& record = header.extents[i];
    if (record.device == device && record.holders & bit(process)) used += record.bytes;
  }
  return used;
}

uint64_t Books::used(int device) {
  const std::lock_guard lock(file_);
  reap_locked();
  return used_locked(device);
}

uint64_t Books::used_by(int device, int pid) {
  const std::lock_guard lock(file_);
  reap_locked();
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    if (file_.header().processes[i].pid == pid) return used_by_locked(device, i);
  }
  return 0;
}

std::vector<ProcessUse> Books::processes(int device) {
  const std::lock_guard lock(file_);
  reap_locked();
  std::vector<ProcessUse> uses;
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    const ProcessRecord& process = file_.header().processes[i];
    if (process.pid == 0 || !(process.contexts >> device & 1)) continue;
    uses.push_back({process.pid, used_by_locked(device, i)});
  }
  return uses;
}

void Books::close_in_child() {
  life_.reset();
  file_.close_in_child();
}

}  // namespace fakecuda
