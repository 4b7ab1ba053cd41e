// The files of lanes: one memfd for each user, which all jobs of that user map.
//
// A file is as long as slot numbers go and has no pages until a job touches a slot. Emptying a slot
// is a hole in the file, so its memory is free at once, even while jobs still have it mapped. That
// is right only because no open lease uses a slot that the coordinator has emptied.
//
// What may go wrong: a hole cannot be made. Then the memory stays in use, and the log says so.
#include "csrc/daemon/jobs/lane_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/wire/limits.h"

namespace gpushare::daemon {
namespace {

// The size must not change. A job that shortened the file would make the others' accesses fault.
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

// The file has room for all slots that there can be and takes no memory until a job writes to one.
Result<UniqueFd> make_file(std::uint32_t uid) {
  const std::string name = fmt::format("gpushare-lane-u{}", uid);
  const Bytes size = wire::kLaneSlotBytes * wire::kMaxLaneSlot;
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_valid()) return fail(errno_status(name + ": memfd_create"));
  if (::ftruncate(fd.get(), size.value()) != 0) return fail(errno_status(name + ": ftruncate"));
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return fail(errno_status(name + ": F_ADD_SEALS"));
  }
  return fd;
}

// Gives back the memory of the slots from `first` to before `end`.
void empty(int file, std::uint32_t first, std::uint32_t end, std::uint32_t uid) {
  const Bytes offset = wire::kLaneSlotBytes * first;
  const Bytes size = wire::kLaneSlotBytes * (end - first);
  if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset.value(), size.value()) !=
      0) {
    log::error(
        "{}",
        errno_status(fmt::format("empty slots {} to {} of u{}", first, end - 1, uid)).message());
  }
}

// Empties all slots but those that are kept. Each gap between kept slots is one call, and only
// where the file has pages there (SEEK_DATA).
void empty_all_but(int file, const std::set<std::uint32_t>& kept, std::uint32_t uid) {
  std::uint32_t first = 0;
  const auto empty_to = [&](std::uint32_t end) {
    const std::uint32_t begin = std::exchange(first, end + 1);
    if (begin >= end) return;
    const off_t data = ::lseek(file, (wire::kLaneSlotBytes * begin).value(), SEEK_DATA);
    if (data >= 0 && data < (wire::kLaneSlotBytes * end).value()) empty(file, begin, end, uid);
  };
  for (const std::uint32_t slot : kept)
    empty_to(slot);
  empty_to(wire::kMaxLaneSlot);
}

}  // namespace

// One for each user, since the jobs of one user may see each other's bytes. It is made when a job
// is first told of slots.
Result<int> LaneFiles::file_of(std::uint32_t uid) {
  UniqueFd& file = files_[uid];
  if (!file.is_valid()) {
    auto made = make_file(uid);
    if (!made) return fail(made.error());
    file = std::move(*made);
  }
  return file.get();
}

void LaneFiles::carry_out(const std::vector<sched::LaneAction>& actions) {
  for (const sched::LaneAction& action : actions) {
    const auto found = files_.find(action.uid);
    if (found == files_.end()) continue;  // nobody was told of it: it holds nothing
    const int file = found->second.get();
    for (const std::uint32_t slot : action.empty)
      empty(file, slot, slot + 1, action.uid);
    if (action.only) empty_all_but(file, *action.only, action.uid);
    if (action.ends) files_.erase(found);
  }
}

}  // namespace gpushare::daemon
