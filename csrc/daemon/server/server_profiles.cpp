// Profiles of jobs that have ended: read when the coordinator begins, written when a job has ended.
// Many jobs may end one after the other, so a write follows the one before after ten seconds at the
// earliest; a timer does it then. A failed write costs nobody anything now, and is tried again when
// the next job ends.
#include <cstdint>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/profile_file.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/sched/job/profiles.h"

namespace gpushare::daemon {
namespace {

// The least time between two writes.
constexpr Nanos kSavePause = seconds(10);

}  // namespace

void Server::Impl::load_profiles() {
  sched::Profiles profiles = daemon::load_profiles(profile_path(options_.socket));
  saved_profiles_ = profiles.num_changes();
  conductor_->set_profiles(std::move(profiles));
}

void Server::Impl::save_profiles() {
  if (conductor_->coordinator().profiles().num_changes() == saved_profiles_) return;
  const Nanos now = monotonic_now();
  if (profiles_saved_at_ && now < *profiles_saved_at_ + kSavePause) {
    profile_timer_.set_at(*profiles_saved_at_ + kSavePause);
    return;
  }
  write_profiles();
}

void Server::Impl::write_profiles() {
  const sched::Profiles& profiles = conductor_->coordinator().profiles();
  if (profiles.num_changes() == saved_profiles_) return;
  const Status status = write_profile_file(profile_path(options_.socket), profiles);
  // Nobody is served worse now; tried again when the next job ends.
  if (!status.ok()) return log::error("{}", status.message());
  saved_profiles_ = profiles.num_changes();
  profiles_saved_at_ = monotonic_now();
}

}  // namespace gpushare::daemon
