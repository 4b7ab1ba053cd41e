// SOCKET.profiles: what is remembered of jobs that have ended (sched/job/profiles.h), for
// coordinators after this one.
//
// Text, one model a line, the oldest first, and a last line that says that it is whole. Written by
// rename. A file that is none, or of another version, is a loss of time only: it is kept aside, and
// the coordinator begins without.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/sched/job/profiles.h"

namespace gpushare::daemon {

std::string profile_path(const std::string& socket);

// Empty if there is no file. errors: kIo; kProtocol for text that is no such file.
Result<sched::Profiles> read_profile_file(const std::string& path);
Status write_profile_file(const std::string& path, const sched::Profiles& profiles);

// The stored profiles, for a coordinator that begins. A file that cannot be read is renamed to
// PATH.damaged, in place of an older one, and that is said once.
sched::Profiles load_profiles(const std::string& path);

}  // namespace gpushare::daemon
