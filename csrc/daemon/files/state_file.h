// SOCKET.jobs: which processes this coordinator serves, for the one that comes after a crash.
//
// Holders go on when a coordinator dies. The next one must not grant a lease before they have told
// it what they hold, so it has to know whom to wait for. Text, one job a line with its start time,
// since a pid alone may be somebody else's by then. Rewritten by rename: a reader sees one version
// or the other. Beside them the policy, if it was changed by hand, and which jobs are paused, and
// by whom: a job is not believed in that, since it could name another user, or end a pause. What it
// does not do: it holds no decision and no bytes; those come from the jobs, and so does what else
// was changed of them.
//
// With a job stands its account, as it is if nobody ever hears of the job again; so do accounts of
// jobs that have ended and are not in the journal yet. A coordinator of an earlier version reads
// the file all the same, without the accounts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::daemon {

struct KnownJob {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string account = {};                     // a line (account.h); empty: none
  std::optional<std::uint32_t> paused_by = {};  // the user; nothing: it is not paused
  bool operator==(const KnownJob&) const = default;
};

struct CoordinatorState {
  std::uint64_t epoch = 0;
  std::vector<KnownJob> jobs;
  std::string policy = {};  // that somebody has set; empty: that of the settings
  bool operator==(const CoordinatorState&) const = default;
};

// The stored state. Empty result: there is no file. errors: kIo; kProtocol for text that is no such
// file.
Result<std::optional<CoordinatorState>> read_state_file(const std::string& path);
Status write_state_file(const std::string& path, const CoordinatorState& state);
Status remove_state_file(const std::string& path);

// Whether it still lives: the process of this pid has this start time.
bool is_alive(const KnownJob& job, const std::string& root = "");

}  // namespace gpushare::daemon
