#include "csrc/daemon/lane_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {
namespace {

// Else a job could make the others' accesses faults.
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

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

}  // namespace

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
    for (const std::uint32_t slot : action.empty) {
      const Bytes offset = wire::kLaneSlotBytes * slot;
      if (::fallocate(found->second.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      offset.value(), wire::kLaneSlotBytes.value()) != 0) {
        log::error("{}",
                   errno_status(fmt::format("empty slot {} of u{}", slot, action.uid)).to_string());
      }
    }
    if (action.ends) files_.erase(found);
  }
}

}  // namespace gpushare::daemon
