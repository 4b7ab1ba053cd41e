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

Books::Books(const Settings& settings) : file_(settings) {
  for (int device = 0; device < settings.num_devices; ++device)
    seen_.push_back(device);
  register_process();
}

int Books::place_of(int device) const {
  return device == kHostPlace ? device : seen_.at(static_cast<size_t>(device));
}

void Books::register_process() {
  const std::lock_guard lock(file_);
  reap_locked();
  auto& processes = file_.header().processes;
  const auto* record = std::find_if(std::begin(processes), std::end(processes),
                                    [](const ProcessRecord& process) { return process.pid == 0; });
  if (record == std::end(processes)) refuse("too many processes share the device file");
  process_ = static_cast<size_t>(record - processes);
  life_ = file_.open_locked(offset_of_process(process_), sizeof(ProcessRecord));
  processes[process_] = {static_cast<int32_t>(getpid()), 0};
}

void Books::reap_locked() {
  Header& header = file_.header();
  uint64_t alive = 0;
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    if (header.processes[i].pid == 0) continue;
    if (file_.is_locked(offset_of_process(i), sizeof(ProcessRecord))) alive |= bit(i);
  }
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    ExtentRecord& record = header.extents[i];
    if (record.bytes == 0) continue;
    record.holders &= alive;
    // Without a holder there may still be a descriptor of it.
    if (record.holders == 0 && !file_.is_locked(record.offset, record.bytes)) erase(record);
  }
  // Last, so that nobody who is given a free record finds extents of its former owner.
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    if ((alive & bit(i)) == 0) header.processes[i] = {};
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

std::optional<Extent> Books::create(int device, uint64_t bytes) {
  const std::lock_guard lock(file_);
  reap_locked();
  Header& header = file_.header();
  const int place = place_of(device);
  if (place != kHostPlace && used_locked(place) + bytes > header.capacity_bytes) return {};
  const Extent extent{header.next_offset, bytes, device};
  const uint64_t end = extent.offset + bytes;
  if (!file_.extend_to(end)) return {};
  header.next_offset = (end + kGranularity - 1) / kGranularity * kGranularity;
  if (!poison(file_.fd(), extent)) {
    file_.punch(extent.offset, bytes);
    return {};
  }
  ExtentRecord& record = *free_record();
  record.offset = extent.offset;
  record.device = place;
  record.holders = bit(process_);
  record.bytes = bytes;
  return extent;
}

UniqueFd Books::export_fd(const Extent& extent) {
  UniqueFd fd = file_.open_locked(extent.offset, extent.bytes);
  lseek(fd.get(), static_cast<off_t>(extent.offset), SEEK_SET);
  return fd;
}

std::optional<Extent> Books::join_locked(uint64_t offset) {
  ExtentRecord* record = find(offset);
  if (record == nullptr) return {};
  record->holders |= bit(process_);
  const auto seen = std::find(seen_.begin(), seen_.end(), record->device);
  const int device = seen == seen_.end() ? record->device : static_cast<int>(seen - seen_.begin());
  return Extent{offset, record->bytes, device};
}

std::optional<Extent> Books::join(int fd) {
  if (!file_.is_ours(fd)) return {};
  const off_t offset = lseek(fd, 0, SEEK_CUR);
  const std::lock_guard lock(file_);
  return join_locked(static_cast<uint64_t>(offset));
}

std::optional<Extent> Books::join_at(uint64_t offset) {
  const std::lock_guard lock(file_);
  reap_locked();
  return join_locked(offset);
}

void Books::leave(const Extent& extent) {
  const std::lock_guard lock(file_);
  ExtentRecord* record = find(extent.offset);
  if (record == nullptr) return;
  record->holders &= ~bit(process_);
  if (record->holders == 0 && !file_.is_locked(record->offset, record->bytes)) erase(*record);
}

bool Books::add_context(int device) {
  const std::lock_guard lock(file_);
  reap_locked();
  Header& header = file_.header();
  const int place = place_of(device);
  if (used_locked(place) + header.context_bytes > header.capacity_bytes) return false;
  header.processes[process_].contexts |= uint32_t{1} << place;
  return true;
}

void Books::remove_context(int device) {
  const std::lock_guard lock(file_);
  file_.header().processes[process_].contexts &= ~(uint32_t{1} << place_of(device));
}

uint64_t Books::used_locked(int place) {
  const Header& header = file_.header();
  uint64_t used = 0;
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    if (header.extents[i].device == place) used += header.extents[i].bytes;
  }
  for (const ProcessRecord& process : header.processes) {
    if (process.contexts >> place & 1) used += header.context_bytes;
  }
  return used;
}

uint64_t Books::used_by_locked(int place, size_t process) {
  const Header& header = file_.header();
  uint64_t used = header.processes[process].contexts >> place & 1 ? header.context_bytes : 0;
  for (uint32_t i = 0; i < header.num_extents; ++i) {
    const ExtentRecord& record = header.extents[i];
    if (record.device == place && record.holders & bit(process)) used += record.bytes;
  }
  return used;
}

uint64_t Books::used(int place) {
  const std::lock_guard lock(file_);
  reap_locked();
  return used_locked(place);
}

uint64_t Books::used_by(int place, int pid) {
  const std::lock_guard lock(file_);
  reap_locked();
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    if (file_.header().processes[i].pid == pid) return used_by_locked(place, i);
  }
  return 0;
}

std::vector<ProcessUse> Books::processes(int place) {
  const std::lock_guard lock(file_);
  reap_locked();
  std::vector<ProcessUse> uses;
  for (size_t i = 0; i < kMaxProcesses; ++i) {
    const ProcessRecord& process = file_.header().processes[i];
    if (process.pid == 0 || !(process.contexts >> place & 1)) continue;
    uses.push_back({process.pid, used_by_locked(place, i)});
  }
  return uses;
}

void Books::reopen_in_child() {
  life_.reset();
  file_.reopen_in_child();
}

}  // namespace fakecuda
