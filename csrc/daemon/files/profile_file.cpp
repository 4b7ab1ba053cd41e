// Profiles as text: a header with the version, one line for each model, and a last line that says
// that the file is whole. Each line names its fields, so that a reader sees at once if one is
// missing. Any line that is not exactly so makes the whole file damaged. Then it is kept aside, and
// the coordinator begins without profiles: they only save time.
#include "csrc/daemon/files/profile_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/text_file.h"

namespace gpushare::daemon {
namespace {

constexpr const char* kHeader = "gpushare-profiles 1";
constexpr const char* kLastLine = "end";
// The length that bounds a line. With the most lines that there may be it bounds the file.
constexpr std::size_t kMostLineBytes = 1000;

// One model. read_line() expects the fields in this order. The lengths come last, each as the
// number of iterations and that of the name: a line of an older coordinator ends before them.
std::string line_of(const sched::ProfileKey& key, const sched::Profile& profile) {
  std::string lengths;
  for (const sched::PastRun& run : profile.lengths.runs())
    lengths +=
        fmt::format("{}{}@{:x}", lengths.empty() ? " lengths " : ",", run.iterations, run.name);
  return fmt::format(
      "profile uid {} model {:016x} iteration_ns {} tail_ns {} gap_ns {} stall_ns {}"
      " persistent_bytes {} ephemeral_bytes {} iterations {}{}\n",
      key.uid, key.fingerprint, profile.iteration.value(), profile.tail.value(),
      profile.gap.value(), profile.stall.value(), profile.sizes.persistent.value(),
      profile.sizes.ephemeral.value(), profile.iterations, lengths);
}

// Reads one line, field by field. After a field that is not as expected all others fail too, so the
// caller asks once, at the end. Amounts below 0 are refused.
class LineReader {
 public:
  explicit LineReader(const std::string& line) : words_(line) { is_good_ = take() == "profile"; }

  template <typename Number>
  void number(const char* name, Number& value) {
    is_good_ = is_good_ && take() == name && words_ >> value;
  }
  void time(const char* name, Nanos& value) { value = Nanos{amount(name)}; }
  void bytes(const char* name, Bytes& value) { value = Bytes{amount(name)}; }
  void model(const char* name, std::uint64_t& value) {
    is_good_ = is_good_ && take() == name && words_ >> std::hex >> value >> std::dec;
  }
  // Nothing, or what line_of() writes.
  void lengths(sched::Lengths& lengths) {
    const std::string name = take();
    if (name.empty()) return;
    const std::string all = take();
    std::istringstream text(all);
    std::string run;
    is_good_ = is_good_ && name == "lengths" && !all.empty() && all.back() != ',';
    while (is_good_ && std::getline(text, run, ',')) {
      std::istringstream numbers(run);
      sched::PastRun past;
      char mark = 0;
      is_good_ = numbers >> past.iterations >> mark >> std::hex >> past.name && mark == '@' &&
                 past.iterations > 0 && numbers.eof();
      lengths.note(past);
    }
  }
  [[nodiscard]] bool ends_well() { return is_good_ && take().empty(); }

 private:
  std::string take() {
    std::string word;
    words_ >> word;
    return word;
  }
  std::int64_t amount(const char* name) {
    std::int64_t value = 0;
    number(name, value);
    is_good_ = is_good_ && value >= 0;
    return value;
  }

  std::istringstream words_;
  bool is_good_ = false;
};

bool read_line(const std::string& line, sched::ProfileKey& key, sched::Profile& profile) {
  LineReader reader(line);
  reader.number("uid", key.uid);
  reader.model("model", key.fingerprint);
  reader.time("iteration_ns", profile.iteration);
  reader.time("tail_ns", profile.tail);
  reader.time("gap_ns", profile.gap);
  reader.time("stall_ns", profile.stall);
  reader.bytes("persistent_bytes", profile.sizes.persistent);
  reader.bytes("ephemeral_bytes", profile.sizes.ephemeral);
  reader.number("iterations", profile.iterations);
  reader.lengths(profile.lengths);
  return reader.ends_well();
}

Status damaged(const std::string& path, const std::string& what) {
  return {StatusCode::kProtocol, fmt::format("{}: {}", path, what)};
}

}  // namespace

std::string profile_path(const std::string& socket) { return socket + ".profiles"; }

// Each profile goes in through note(), as one that was just measured. So the numbers pass the same
// limits, and the order of the lines is the order in which jobs left them. A file that was cut off,
// as by a full disk, lacks the last line.
Result<sched::Profiles> read_profile_file(const std::string& path) {
  sched::Profiles profiles;
  auto text = read_text_file(path, kMostLineBytes * (sched::Profiles::kMost + 2));
  if (!text) return fail(text.error());
  if (!*text) return profiles;
  std::istringstream lines(std::move(**text));
  std::string line;
  if (!std::getline(lines, line) || line != kHeader) {
    return fail(damaged(path, "not a file of profiles of this version"));
  }
  while (std::getline(lines, line) && line != kLastLine) {
    sched::ProfileKey key;
    sched::Profile profile;
    if (!read_line(line, key, profile)) {
      return fail(damaged(path, fmt::format("bad line: {:.80}", line)));
    }
    profiles.note(key, profile);
  }
  if (line != kLastLine) return fail(damaged(path, "its end is missing"));
  return profiles;
}

Status write_profile_file(const std::string& path, const sched::Profiles& profiles) {
  std::string text = fmt::format("{}\n", kHeader);
  for (const auto& [key, profile] : profiles.oldest_first())
    text += line_of(key, profile);
  return write_text_file(path, text + kLastLine + "\n");
}

// The damaged file makes way for a good one, and is kept for whoever wants to know what happened.
// Without the rename the same warning would come at each start, until the next write.
sched::Profiles load_profiles(const std::string& path) {
  auto profiles = read_profile_file(path);
  if (profiles.has_value()) return std::move(*profiles);
  const std::string aside = path + ".damaged";
  const bool is_moved = std::rename(path.c_str(), aside.c_str()) == 0;
  log::warn("{}; {}, and what was remembered of models is learned anew", profiles.error().message(),
            is_moved ? "it is kept as " + aside : errno_status("rename " + path).message());
  return {};
}

}  // namespace gpushare::daemon
