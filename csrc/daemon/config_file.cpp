#include "csrc/daemon/config_file.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/settings.h"
#include "csrc/daemon/user_settings.h"

namespace gpushare::daemon {
namespace {

// Keys of our tables that other programs, or later versions, read.
constexpr std::array<std::string_view, 2> kOthersKeys{"host.per_user", "host.pinned"};
constexpr std::array<std::string_view, 5> kOurTables{"coordinator", "host", "log", "device.cpu",
                                                     "device.cuda"};

// A scalar as a command line would spell it; nothing for arrays, tables and dates.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

class Reader {
 public:
  Reader(const std::string& path, DaemonOptions& options) : path_(path), options_(options) {}

  // Everybody else's first: what the others' tables do not say is as there.
  Status read_users(const toml::table& file) {
    const toml::table* const users = file["user"].as_table();
    if (users == nullptr) return {};
    if (const toml::table* const table = (*users)[kDefaultUser].as_table()) {
      GS_RETURN_IF_ERROR(read_user(*table, kDefaultUser, options_.users.others));
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
          options_.users.named.try_emplace(*uid, options_.users.others).first->second;
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
      if (name == "user") continue;  // read_users
      if (const auto* inner = node.as_table()) {
        GS_RETURN_IF_ERROR(read(*inner, name));
      } else {
        GS_RETURN_IF_ERROR(read_value(node, name, prefix));
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

  Status read_value(const toml::node& node, const std::string& name, const std::string& prefix) {
    const Setting* setting = find_setting(name);
    if (setting == nullptr) {
      warn_if_ours(node, name, prefix);
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
    return apply_setting(*setting, *text, seconds(1), where, options_);
  }

  void warn_if_ours(const toml::node& node, const std::string& name, const std::string& prefix) {
    for (const std::string_view known : kOthersKeys) {
      if (name == known) return;
    }
    for (const std::string_view table : kOurTables) {
      if (prefix != table) continue;
      options_.warnings.push_back(
          fmt::format("{}:{}: unknown key {}", path_, node.source().begin.line, name));
    }
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

Status read_config_file(const std::string& path, bool must_exist, DaemonOptions& options) {
  std::ifstream file(path);
  if (!file) {
    if (!must_exist && (errno == ENOENT || errno == ENOTDIR)) return {};
    return errno_status("read " + path);
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return errno_status("read " + path);
  return read_config_text(text, path, options);
}

}  // namespace gpushare::daemon
