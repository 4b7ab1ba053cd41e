// An account as a line of JSON. The names of the fields are part of the format (kAccountVersion),
// so they stay when a field of Account is renamed. Times are written in ns, sizes in bytes.
#include "csrc/daemon/files/account.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "csrc/base/printable.h"
#include "csrc/base/status.h"

namespace gpushare::daemon {
namespace {

// FNV-1a of 64 bits: the same number for the same text in every version of this program.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

bool is_allowed_in_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '_' ||
         letter == '-';
}

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// An end that a later version may write counts as lost, which claims the least.
JobEnd end_called(std::string_view name) {
  for (const JobEnd end : {JobEnd::kEnded, JobEnd::kDied, JobEnd::kCarriedOn}) {
    if (name == name_of(end)) return end;
  }
  return JobEnd::kLost;
}

}  // namespace

const char* name_of(JobEnd end) {
  switch (end) {
    case JobEnd::kEnded: return "ended";
    case JobEnd::kDied: return "died";
    case JobEnd::kLost: return "lost";
    case JobEnd::kCarriedOn: return "carried on";
  }
  return "";
}

// Pid and start time name one process of one boot. What differs most stands first, since FNV mixes
// what comes early best, and people tell jobs apart by the first digits. 48 bits of the hash are
// enough: among 100,000 jobs the chance that two share a number is 1 in 50,000.
std::string host_job_id(std::int32_t pid, std::uint64_t start_ticks) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return fmt::format("{:012x}", hash_of(fmt::format("{} {} {}", pid, start_ticks, boot)) >> 16);
}

std::string host_name() {
  std::array<char, 256> text{};
  if (::gethostname(text.data(), text.size() - 1) != 0 || text.front() == '\0') return "host";
  std::string name(text.data());
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return !is_allowed_in_name(letter); }, '_');
  return name;
}

std::int64_t unix_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return (seconds(now.tv_sec) + Nanos{now.tv_nsec}).value();
}

// Names were made printable where they came in. Bytes that are no text are replaced all the same,
// because the library throws otherwise. The first four fields stay the first (beginning_of()).
std::string line_of(const Account& account) {
  const Json json = {{"v", kAccountVersion},
                     {"id", account.id},
                     {"epoch", account.epoch},
                     {"job", account.job.value},
                     {"pid", account.pid},
                     {"uid", account.uid},
                     {"name", account.name},
                     {"group", account.group},
                     {"command", account.command},
                     {"host", account.host},
                     {"device", account.device},
                     {"policy", account.policy},
                     {"start_ns", account.start_unix_ns},
                     {"end_ns", account.end_unix_ns},
                     {"end", name_of(account.end)},
                     {"wait_status", account.wait_status ? Json(*account.wait_status) : Json()},
                     {"held_ns", account.held.value()},
                     {"waited_ns", account.waited.value()},
                     {"switching_ns", account.switching.value()},
                     {"leases", account.leases},
                     {"iterations", account.iterations},
                     {"optimizer_steps", account.optimizer_steps},
                     {"busy_ns", account.busy.value()},
                     {"dropped_bytes", account.dropped.value()},
                     {"spilled_bytes", account.spilled.value()},
                     {"restored_bytes", account.restored.value()},
                     {"peak_bytes", account.peak.value()},
                     {"gang", account.gang},
                     {"ranks", account.ranks}};
  return text_of(json);
}

// A field that is missing, or of another type, makes the whole line bad: sums over accounts would
// take it for a zero otherwise. Texts are made printable again, since a person may have edited the
// file.
Result<Account> read_account(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    const auto get = [&json](const char* name, auto& into) { json.at(name).get_to(into); };
    const auto get_text = [&json](const char* name, std::string& into) {
      into = printable(json.at(name).get<std::string>());
    };
    const auto get_quantity = [&json](const char* name, auto& into) {
      into = std::remove_reference_t<decltype(into)>{json.at(name).get<std::int64_t>()};
    };
    Account account;
    get_text("id", account.id);
    get("epoch", account.epoch);
    get("job", account.job.value);
    get("pid", account.pid);
    get("uid", account.uid);
    get_text("name", account.name);
    get_text("group", account.group);
    get_text("command", account.command);
    get_text("host", account.host);
    get_text("device", account.device);
    get_text("policy", account.policy);
    get("start_ns", account.start_unix_ns);
    get("end_ns", account.end_unix_ns);
    account.end = end_called(json.at("end").get<std::string>());
    if (const Json& status = json.at("wait_status"); !status.is_null())
      account.wait_status = status.get<std::int32_t>();
    get_quantity("held_ns", account.held);
    get_quantity("waited_ns", account.waited);
    get_quantity("switching_ns", account.switching);
    get("leases", account.leases);
    get("iterations", account.iterations);
    get("optimizer_steps", account.optimizer_steps);
    get_quantity("busy_ns", account.busy);
    get_quantity("dropped_bytes", account.dropped);
    get_quantity("spilled_bytes", account.spilled);
    get_quantity("restored_bytes", account.restored);
    get_quantity("peak_bytes", account.peak);
    // A line of version 1 has neither.
    account.gang = printable(json.value("gang", ""));
    account.ranks = json.value("ranks", 1U);
    return account;
  } catch (const Json::exception& error) {
    return fail(StatusCode::kProtocol, fmt::format("not an account: {}", error.what()));
  }
}

// Tells an account from all others without reading the whole line. It must be what line_of() begins
// with, to the byte.
std::string beginning_of(const Account& account) {
  std::string text = text_of({{"v", kAccountVersion},
                              {"id", account.id},
                              {"epoch", account.epoch},
                              {"job", account.job.value}});
  text.back() = ',';
  return text;
}

}  // namespace gpushare::daemon
