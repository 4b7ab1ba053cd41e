// The tables [user.NAME] of the configuration file: what is set for a user, by his name or number.
//
// [user.default] is for everybody else, and what a named user's table does not say is as there. A
// name that this machine does not know is a warning: the file may be that of several machines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/sched/job/user_options.h"

namespace gpushare::daemon {

inline constexpr auto kDefaultUser = "default";

// "1001", or a name that getpwnam() knows.
std::optional<std::uint32_t> find_uid(const std::string& name);
// The same of a group, with getgrnam().
std::optional<std::uint32_t> find_gid(const std::string& name);

// For a coordinator that others than `owner` may use: where nothing else is set, their jobs are of
// priority normal at most, and 64 each. `owner` and root trust themselves.
void make_users_safe(std::uint32_t owner, sched::Users& users);

bool is_user_setting(const std::string& key);
// One key of such a table: "weight". pre: is_user_setting(key). errors: kInvalidArgument, naming
// `where`, the key, the value and what is allowed.
Status apply_user_setting(const std::string& key,
                          const std::string& text,
                          const std::string& where,
                          sched::UserOptions& user);

}  // namespace gpushare::daemon
