// The jobs of this coordinator as text, for the one after a crash: a header, the epoch, the policy
// if it was set by hand, a line for each job, and behind it one line more if that job is paused. A
// line that cannot be read makes the whole file unusable (kProtocol), and the next coordinator
// begins without it. A coordinator of an earlier version knows no pauses: while a job is paused, it
// begins without the file.
#include "csrc/daemon/files/state_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/status.h"
#include "csrc/daemon/files/text_file.h"
#include "csrc/daemon/machine/process_info.h"

namespace gpushare::daemon {
namespace {

constexpr const char* kJobsHeader = "gpushare-jobs 1";

bool read_epoch(const std::string& line, std::uint64_t& epoch) {
  std::istringstream words(line);
  std::string word;
  return words >> word >> epoch && word == "epoch";
}

bool read_job(const std::string& line, KnownJob& job) {
  std::istringstream words(line);
  std::string word;
  const bool is_read = words >> word >> job.pid >> job.start_ticks && word == "job" && job.pid > 0;
  if (is_read && words.get() == ' ') std::getline(words, job.account);
  return is_read;
}

// The job is that of the line before.
bool read_pause(const std::string& line, std::vector<KnownJob>& jobs) {
  std::istringstream words(line);
  std::string word;
  std::uint32_t uid = 0;
  if (!(words >> word >> uid) || word != "paused_by" || jobs.empty()) return false;
  jobs.back().paused_by = uid;
  return true;
}

bool read_policy(const std::string& line, std::string& policy) {
  std::istringstream words(line);
  std::string word;
  std::string name;
  if (!(words >> word >> name) || word != "policy") return false;
  policy = name;
  return true;
}

}  // namespace

// A line of the policy may stand anywhere behind the epoch. A missing file is the usual case: the
// coordinator before ended in order, and had no jobs.
Result<std::optional<CoordinatorState>> read_state_file(const std::string& path) {
  // More than any number of jobs that this machine could hold.
  constexpr std::size_t kMostBytes = 16 << 20;
  const auto text = read_text_file(path, kMostBytes);
  if (!text) return fail(text.error());
  if (!*text) return std::nullopt;
  std::istringstream file(**text);
  std::string line;
  CoordinatorState state;
  if (!std::getline(file, line) || line != kJobsHeader || !std::getline(file, line) ||
      !read_epoch(line, state.epoch)) {
    return fail(StatusCode::kProtocol, path + ": not a file of jobs");
  }
  while (std::getline(file, line)) {
    if (read_policy(line, state.policy) || read_pause(line, state.jobs)) continue;
    KnownJob job;
    if (!read_job(line, job)) return fail(StatusCode::kProtocol, path + ": bad line: " + line);
    state.jobs.push_back(job);
  }
  return state;
}

// write_text_file() renames, so a crash during the write leaves the file before.
Status write_state_file(const std::string& path, const CoordinatorState& state) {
  std::string text = fmt::format("{}\nepoch {}\n", kJobsHeader, state.epoch);
  if (!state.policy.empty()) text += fmt::format("policy {}\n", state.policy);
  for (const KnownJob& job : state.jobs) {
    text += fmt::format("job {} {}", job.pid, job.start_ticks);
    if (!job.account.empty()) text += " " + job.account;
    text += '\n';
    if (job.paused_by.has_value()) text += fmt::format("paused_by {}\n", *job.paused_by);
  }
  return write_text_file(path, text);
}

Status remove_state_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_status("remove " + path);
  return {};
}

// A number with another start time is another process.
bool is_alive(const KnownJob& job, const std::string& root) {
  const auto stat = read_process_stat(job.pid, root);
  return stat && stat->start_ticks == job.start_ticks;
}

}  // namespace gpushare::daemon
