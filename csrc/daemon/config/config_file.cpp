// Reads a TOML file into the options. A key that is known is applied by its Setting, which also
// checks the value. A key that is not known is only a warning, with a guess; a bad value is an
// error.
//
// Users are read first, and of these the table of everybody: the tables of single users begin with
// its values. A user who does not exist on this machine is a warning.
#include "csrc/daemon/config/config_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <ios>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/setting_values.h"
#include "csrc/daemon/config/settings.h"
#include "csrc/daemon/config/user_settings.h"

namespace gpushare::daemon {
namespace {

// Keys in our tables that are for other programs, or for later versions.
constexpr std::array<std::string_view, 2> kOthersKeys{"host.per_user", "host.pinned"};
constexpr std::array<std::string_view, 7> kOurTables{"accounts", "coordinator", "host",       "log",
                                                     "device",   "device.cpu",  "device.cuda"};
constexpr std::string_view kJobsTable = "job";
// A longer file is no file of settings. GPUSHARE_CONFIG may name a log by mistake.
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;

// The edit distance: how many letters have to be changed, added or left out to make one word of the
// other.
std::size_t letters_apart(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t changed = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// "host.budget" as "host" and "budget".
std::pair<std::string_view, std::string_view> split(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

// "; did you mean KEY?": the key that is spelled most alike, if at most half of its letters differ,
// and of two such keys the one in the same table. Empty if there is none.
std::string suggestion(std::string_view unknown) {
  const auto [table, name] = split(unknown);
  std::string_view nearest;
  std::size_t least = name.size() + 1;
  for (const Setting& setting : all_settings()) {
    if (setting.key == nullptr) continue;
    const auto [known_table, known_name] = split(setting.key);
    const std::size_t differ = 2 * letters_apart(name, known_name) + (known_table == table ? 0 : 1);
    if (differ >= least) continue;
    least = differ;
    nearest = setting.key;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

// A pipe is refused before it is opened, since that would wait for its writer, and so is a device,
// which may have no end. /dev/null stands for no settings. Of a path that cannot be looked at, the
// open that follows says why.
Status check_is_file(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return {};
  struct stat null{};
  const bool is_null =
      S_ISCHR(info.st_mode) && ::stat("/dev/null", &null) == 0 && info.st_rdev == null.st_rdev;
  if (is_null) return {};
  return {StatusCode::kInvalidArgument,
          path +
              " is a pipe or a device, and no file of settings: name a plain file, or /dev/null "
              "for no settings"};
}

// A scalar as a command line would spell it; nothing for arrays, tables and dates.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

// Walks through one parsed file. An unknown key or table is a warning, so that a file may serve
// several versions. A bad value ends the start, since the user meant something by it.
class Reader {
 public:
  Reader(const std::string& path, DaemonOptions& options) : path_(path), options_(options) {}

  // Reads the tables [user.NAME]. The one of all other users comes first: whatever a user's own
  // table does not say is as there.
  Status read_users(const toml::table& file) {
    const toml::table* const users = file["user"].as_table();
    if (users == nullptr) return {};
    if (const toml::table* const table = (*users)[kDefaultUser].as_table()) {
      GS_RETURN_IF_ERROR(read_user(*table, kDefaultUser, options_.coordinator.users.others));
    }
    for (const auto& [key, node] : *users) {
      const std::string name(key.str());
      const toml::table* const table = node.as_table();
      if (table == nullptr || name == kDefaultUser) continue;
      const auto uid = find_uid(name);
      if (!uid.has_value()) {
        options_.warnings.push_back(
            fmt::format("{}:{}: [user.{}]: no user of this machine has that name", path_,
                        node.source().begin.line, name));
        continue;
      }
      sched::UserOptions& user =
          options_.coordinator.users.named.try_emplace(*uid, options_.coordinator.users.others)
              .first->second;
      user.name = name;
      GS_RETURN_IF_ERROR(read_user(*table, name, user));
    }
    return {};
  }

  // `prefix` is the table's name.
  Status read(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name =
          prefix.empty() ? std::string(key.str()) : fmt::format("{}.{}", prefix, key.str());
      if (name == "user" || name == kJobsTable) continue;  // by read_users, by jobs
      const bool is_ours =
          std::find(kOurTables.begin(), kOurTables.end(), name) != kOurTables.end();
      if (const auto* inner = node.as_table(); inner != nullptr && !is_ours) {
        warn(node, fmt::format("unknown table [{}]", name));
      } else if (inner != nullptr) {
        GS_RETURN_IF_ERROR(read(*inner, name));
      } else {
        GS_RETURN_IF_ERROR(read_value(node, name));
      }
    }
    return {};
  }

 private:
  Status read_user(const toml::table& table, const std::string& name, sched::UserOptions& user) {
    for (const auto& [key, node] : table) {
      const std::string where =
          fmt::format("{}:{}: user.{}", path_, node.source().begin.line, name);
      const std::string setting(key.str());
      if (is_user_setting(setting)) {
        GS_RETURN_IF_ERROR(apply_user_setting(setting, text_of(node).value_or("?"), where, user));
      } else {
        options_.warnings.push_back(fmt::format("{}: unknown key {}", where, setting));
      }
    }
    return {};
  }

  Status read_value(const toml::node& node, const std::string& name) {
    const Setting* setting = find_setting(name);
    if (setting == nullptr) {
      const bool is_others =
          std::find(kOthersKeys.begin(), kOthersKeys.end(), name) != kOthersKeys.end();
      if (!is_others) warn(node, fmt::format("unknown key {}{}", name, suggestion(name)));
      return {};
    }
    const std::string where = fmt::format("{}:{}", path_, node.source().begin.line);
    const auto text = text_of(node);
    if (!text) {
      std::ostringstream shown;
      node.visit([&shown](const auto& value) { shown << value; });
      return {StatusCode::kInvalidArgument, fmt::format("{}: {}: bad value {}; allowed: {}", where,
                                                        name, shown.str(), setting->allowed)};
    }
    // A time as text must have a unit: "10" could be milliseconds, as on the command line, or
    // seconds.
    const bool is_time = setting->option_unit_ns != 0;
    if (is_time && node.is_string() && parse_number(*text).value_or(0) != 0) {
      return {StatusCode::kInvalidArgument, fmt::format("{}: {}: bad value \"{}\"; say {}ms or {}s",
                                                        where, name, *text, *text, *text)};
    }
    return apply_setting(*setting, *text, seconds(1), where, options_);
  }

  void warn(const toml::node& node, const std::string& text) {
    options_.warnings.push_back(fmt::format("{}:{}: {}", path_, node.source().begin.line, text));
  }

  const std::string& path_;
  DaemonOptions& options_;
};

}  // namespace

Status read_config_text(const std::string& text, const std::string& path, DaemonOptions& options) {
  const toml::parse_result parsed = toml::parse(std::string_view(text), std::string_view(path));
  if (!parsed) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{}:{}: {}", path, parsed.error().source().begin.line,
                        parsed.error().description())};
  }
  Reader reader(path, options);
  GS_RETURN_IF_ERROR(reader.read_users(parsed.table()));
  return reader.read(parsed.table(), "");
}

// A default file may be missing; one that the user has named may not.
Status read_config_file(const std::string& path, bool must_exist, DaemonOptions& options) {
  GS_RETURN_IF_ERROR(check_is_file(path));
  std::ifstream file(path);
  if (!file) {
    if (!must_exist && (errno == ENOENT || errno == ENOTDIR)) return {};
    return errno_status("read " + path);
  }
  // One byte more than allowed, so that a longer file is seen as such.
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return errno_status("read " + path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostFileBytes) {
    return {StatusCode::kInvalidArgument,
            path + " has more than 1 MiB, so it is no file of settings"};
  }
  return read_config_text(text, path, options);
}

}  // namespace gpushare::daemon
