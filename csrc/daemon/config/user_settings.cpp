// Settings of users: one table with what each may be, and who is who on this machine.
//
// make_users_safe() is for a coordinator that other users may use. Its owner and root may have any
// class and many jobs. All others get class `normal` at most and 64 jobs, unless the configuration
// says otherwise. Without it a user could give his own jobs the highest class, or take all
// descriptors.
#include "csrc/daemon/config/user_settings.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/units.h"
#include "csrc/daemon/config/setting_values.h"
#include "csrc/wire/priority.h"

namespace gpushare::daemon {
namespace {

constexpr double kMaxWeight = 1e6;
constexpr std::uint32_t kMostJobs = 100'000;
// More than a machine has use for, and a fraction of the descriptors that there are.
constexpr std::uint32_t kMostJobsOfUser = 64;

struct UserSetting {
  const char* key;
  const char* allowed;
  // false: not allowed.
  bool (*apply)(sched::UserOptions& user, const std::string& text);
};

// The number of a user or group, if the text is nothing but one.
std::optional<std::uint32_t> parse_id(const std::string& text) {
  std::uint32_t id = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, id);
  if (error != std::errc{} || stop != end) return {};
  return id;
}

constexpr std::array kUserSettings{
    UserSetting{"weight", "a number from 1e-06 to 1e+06",
                [](sched::UserOptions& user, const std::string& text) {
                  const auto weight = parse_number(text);
                  if (!weight || *weight < 1 / kMaxWeight || *weight > kMaxWeight) return false;
                  user.weight = *weight;
                  return true;
                }},
    UserSetting{"share_limit", "a number from 0.01 to 1, or 0 for none",
                [](sched::UserOptions& user, const std::string& text) {
                  const auto share = parse_number(text);
                  if (!share || (*share != 0 && *share < 0.01) || *share > 1) return false;
                  user.share_limit = *share;
                  return true;
                }},
    UserSetting{"memory_limit", "a size like \"8GiB\", or 0 for none",
                [](sched::UserOptions& user, const std::string& text) {
                  user.memory_limit = parse_bytes(text);
                  return user.memory_limit >= Bytes{0};
                }},
    UserSetting{"max_priority", "guaranteed, interactive, normal or opportunistic",
                [](sched::UserOptions& user, const std::string& text) {
                  user.max_priority = wire::parse_priority(text);
                  return user.max_priority.has_value();
                }},
    UserSetting{"max_weight", "a number from 1e-06 to 1e+06",
                [](sched::UserOptions& user, const std::string& text) {
                  user.max_weight = parse_number(text);
                  return user.max_weight && *user.max_weight >= 1 / kMaxWeight &&
                         *user.max_weight <= kMaxWeight;
                }},
    UserSetting{"max_jobs", "a whole number from 1 to 100000",
                [](sched::UserOptions& user, const std::string& text) {
                  const auto number = parse_number(text);
                  if (!number || *number < 1 || *number > kMostJobs ||
                      *number != std::floor(*number))
                    return false;
                  user.max_jobs = static_cast<std::uint32_t>(*number);
                  return true;
                }},
    UserSetting{"elastic", "true or false",
                [](sched::UserOptions& user, const std::string& text) {
                  if (text != "true" && text != "false") return false;
                  user.is_elastic = text == "true";
                  return true;
                }},
};

}  // namespace

// A number stands for itself, so a user without a name on this machine can be meant too.
std::optional<std::uint32_t> find_uid(const std::string& name) {
  if (const auto uid = parse_id(name)) return uid;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(size_t{1} << 16);
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  if (found == nullptr) return {};
  return found->pw_uid;
}

// As find_uid(). The buffer is large, since a group's entry has the names of all its members.
std::optional<std::uint32_t> find_gid(const std::string& name) {
  if (const auto gid = parse_id(name)) return gid;
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(size_t{1} << 16);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  if (found == nullptr) return {};
  return found->gr_gid;
}

// The owner and root come first, so that the limits of all others find their values set. What a
// file says of a user is never changed.
void make_users_safe(std::uint32_t owner, sched::Users& users) {
  for (const std::uint32_t trusted : {owner, std::uint32_t{0}}) {
    sched::UserOptions& options = users.named.try_emplace(trusted, users.others).first->second;
    if (!options.max_priority) options.max_priority = wire::Priority::kGuaranteed;
    if (!options.max_jobs) options.max_jobs = kMostJobs;
  }
  const auto limit = [](sched::UserOptions& options) {
    if (!options.max_priority) options.max_priority = wire::Priority::kNormal;
    if (!options.max_jobs) options.max_jobs = kMostJobsOfUser;
  };
  limit(users.others);
  for (auto& [uid, options] : users.named)
    limit(options);
}

bool is_user_setting(const std::string& key) {
  return std::any_of(kUserSettings.begin(), kUserSettings.end(),
                     [&](const UserSetting& setting) { return key == setting.key; });
}

// pre: is_user_setting(key).
Status apply_user_setting(const std::string& key,
                          const std::string& text,
                          const std::string& where,
                          sched::UserOptions& user) {
  const auto setting = std::find_if(kUserSettings.begin(), kUserSettings.end(),
                                    [&](const UserSetting& known) { return key == known.key; });
  if (setting->apply(user, text)) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("{}: {}: bad value \"{}\"; allowed: {}", where, key, text, setting->allowed)};
}

}  // namespace gpushare::daemon
