// Decides when the file of profiles is written.
//
// A write that comes too soon after the last one is not made but planned: the timer then calls
// save() again, which finds out whether there is still something to write. A failed write costs
// nobody anything now, and is tried again when the next job ends.
#include "csrc/daemon/files/profile_store.h"

#include <cstdint>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/profile_file.h"

namespace gpushare::daemon {
namespace {

// The least time between two writes.
constexpr Nanos kSavePause = seconds(10);

}  // namespace

ProfileStore::ProfileStore(const std::string& socket, ipc::EventLoop& loop, Source source)
    : path_(profile_path(socket)),
      source_(std::move(source)),
      timer_(loop.make_timer([this] { save(); })) {}

sched::Profiles ProfileStore::load() {
  sched::Profiles profiles = load_profiles(path_);
  written_ = profiles.num_changes();
  return profiles;
}

bool ProfileStore::has_changed() const { return source_().num_changes() != written_; }

void ProfileStore::save() {
  if (!has_changed()) return;
  if (written_at_ && monotonic_now() < *written_at_ + kSavePause) {
    timer_.set_at(*written_at_ + kSavePause);
    return;
  }
  write();
}

void ProfileStore::write() {
  if (!has_changed()) return;
  const sched::Profiles& profiles = source_();
  const Status status = write_profile_file(path_, profiles);
  if (!status.ok()) return log::error("{}", status.message());
  written_ = profiles.num_changes();
  written_at_ = monotonic_now();
}

}  // namespace gpushare::daemon
