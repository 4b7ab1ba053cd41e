// Reads a trace. The first line says which column is where; each further line is a job. A table of
// columns (kColumns) has the name, the unit and the reader of each, so a new column is one line
// there.
//
// A job needs a number of iterations and the time of one. A trace may give both, or a duration with
// one of them, or a duration alone (settle_iterations). A row is checked like a job of a scenario.
//
// What may go wrong: an unknown or doubled column, a value that cannot be read, or a row of another
// length. Each is an error with the line's number.
#include "csrc/sim/scenario/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sim/scenario/values.h"

namespace gpushare::sim {
namespace {

// The time of an iteration, if the trace says only how long a job runs.
constexpr Nanos kUnknownIteration = millis(100);

// One row while it is read, with what the trace has said of the job so far.
struct Row {
  JobSpec job;
  std::optional<Nanos> duration;
  bool has_iterations = false;
  bool has_peak = false;
};

// Hands a value over that was read. false: the text was none.
template <typename Value>
bool put(const std::optional<Value>& parsed, Value& value) {
  if (parsed.has_value()) value = *parsed;
  return parsed.has_value();
}

// Which units may follow a column's name after `_`.
enum class Unit : std::uint8_t { kNone, kTime, kSize };

// `form` says in an error what a value should be. `read` returns false for a text that is no such
// value.
struct Column {
  const char* name;
  Unit unit;
  const char* form;
  bool (*read)(const std::string& text, Row& row);
};

// The columns that say more than their value: whether they were there decides in
// settle_iterations() and in read_row().
bool read_iterations(const std::string& text, Row& row) {
  row.has_iterations = true;
  return put(parse_count(text), row.job.iterations);
}
bool read_duration(const std::string& text, Row& row) {
  row.duration = parse_time(text);
  return row.duration.has_value();
}
bool read_peak(const std::string& text, Row& row) {
  row.has_peak = true;
  return put(parse_size(text), row.job.peak);
}
bool read_priority(const std::string& text, Row& row) {
  return put(wire::parse_priority(text), row.job.priority);
}
bool read_due(const std::string& text, Row& row) {
  row.job.due = parse_time(text);
  return row.job.due.has_value();
}
bool read_elastic(const std::string& text, Row& row) {
  row.job.is_elastic = text == "1";
  return text == "0" || text == "1";
}
bool read_gpus(const std::string& text, Row& row) {
  const auto gpus = parse_count(text);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (gpus.has_value()) row.job.gpus = static_cast<std::uint32_t>(std::min(*gpus, kMost));
  return gpus.has_value();
}
bool read_model(const std::string& text, Row& row) {
  row.job.model = text;
  return true;
}
bool read_says_length(const std::string& text, Row& row) {
  row.job.says_length = text == "1";
  return text == "0" || text == "1";
}
bool read_speeds(const std::string& text, Row& row) {
  auto speeds = parse_job_speeds(text);
  if (speeds.has_value()) row.job.speeds = std::move(*speeds);
  return speeds.has_value();
}
bool read_name(const std::string& text, Row& row) {
  row.job.name = text;
  return true;
}
bool read_user(const std::string& text, Row& row) {
  row.job.user = text;
  return true;
}

constexpr const char* kTimeForm = "a time such as 100ms";
constexpr const char* kSizeForm = "a size such as 512MiB";

constexpr std::array kColumns{
    Column{"name", Unit::kNone, "a name", read_name},
    Column{"user", Unit::kNone, "a name", read_user},
    Column{
        "submit", Unit::kTime, kTimeForm,
        [](const std::string& text, Row& row) { return put(parse_time(text), row.job.arrival); }},
    Column{"iterations", Unit::kNone, "a count", read_iterations},
    Column{"duration", Unit::kTime, kTimeForm, read_duration},
    Column{
        "iteration", Unit::kTime, kTimeForm,
        [](const std::string& text, Row& row) { return put(parse_time(text), row.job.iteration); }},
    Column{"gap", Unit::kTime, kTimeForm,
           [](const std::string& text, Row& row) { return put(parse_time(text), row.job.gap); }},
    Column{"persistent", Unit::kSize, kSizeForm,
           [](const std::string& text, Row& row) { return put(parse_size(text), row.job.live); }},
    Column{"peak", Unit::kSize, kSizeForm, read_peak},
    Column{
        "weight", Unit::kNone, "a number",
        [](const std::string& text, Row& row) { return put(parse_number(text), row.job.weight); }},
    Column{"utilisation", Unit::kNone, "a number above 0, and 1 at most",
           [](const std::string& text, Row& row) {
             return put(parse_number(text), row.job.utilisation);
           }},
    Column{"gpus", Unit::kNone, "a count", read_gpus},
    Column{"priority", Unit::kNone, "guaranteed, interactive, normal or opportunistic",
           read_priority},
    Column{"limit", Unit::kSize, kSizeForm,
           [](const std::string& text, Row& row) { return put(parse_size(text), row.job.limit); }},
    Column{
        "deadline", Unit::kTime, kTimeForm,
        [](const std::string& text, Row& row) { return put(parse_time(text), row.job.deadline); }},
    Column{"share_limit", Unit::kNone, "a number from 0.01 to 1, or 0 for none",
           [](const std::string& text, Row& row) {
             return put(parse_number(text), row.job.share_limit);
           }},
    Column{"elastic", Unit::kNone, "0 or 1", read_elastic},
    Column{"model", Unit::kNone, "a name", read_model},
    Column{"says_length", Unit::kNone, "0 or 1", read_says_length},
    Column{"due", Unit::kTime, kTimeForm, read_due},
    Column{"speeds", Unit::kNone, "kinds of devices with speeds of 0.01 to 100, as v100:1/k80:0.2",
           read_speeds},
};

// A column of this trace.
struct Head {
  const Column* column = nullptr;
  std::string label;  // as the trace writes it
  std::string unit;   // put after each value
};

// The values between commas, without blanks around them. There is no quoting.
std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> values;
  for (std::size_t from = 0;;) {
    const std::size_t comma = line.find(',', from);
    std::string_view value = line.substr(from, comma - from);
    const std::size_t first = value.find_first_not_of(" \t");
    value = first == std::string_view::npos ? std::string_view{} : value.substr(first);
    values.emplace_back(value.substr(0, value.find_last_not_of(" \t") + 1));
    if (comma == std::string_view::npos) return values;
    from = comma + 1;
  }
}

bool is_unit(const Column& column, const std::string& unit) {
  switch (column.unit) {
    case Unit::kTime: return parse_time("1" + unit).has_value();
    case Unit::kSize: return parse_size("1" + unit).has_value();
    default: return false;
  }
}

// "peak_mib" is the column peak in MiB.
std::optional<Head> head_of(const std::string& label) {
  const std::size_t mark = label.rfind('_');
  const std::string unit = mark == std::string::npos ? "" : label.substr(mark + 1);
  for (const Column& column : kColumns) {
    if (label == column.name) return Head{&column, label, ""};
    if (mark != std::string::npos && label.substr(0, mark) == column.name && !unit.empty() &&
        is_unit(column, unit)) {
      return Head{&column, label, unit};
    }
  }
  return std::nullopt;
}

// The first line of a trace. When a job comes and how long it runs must be there; every other
// column has a default.
Result<std::vector<Head>> read_heads(std::string_view line) {
  std::vector<Head> heads;
  std::set<std::string> seen;
  for (const std::string& label : split(line)) {
    const std::optional<Head> head = head_of(label);
    if (!head.has_value()) {
      std::vector<std::string> names;
      for (const Column& column : kColumns)
        names.emplace_back(column.name);
      return fail(invalid(
          fmt::format("no column is called '{}': there are {}", label, fmt::join(names, ", "))));
    }
    if (!seen.insert(head->column->name).second) {
      return fail(invalid(fmt::format("the column '{}' is there twice", head->column->name)));
    }
    heads.push_back(*head);
  }
  if (!seen.contains("submit")) return fail(invalid("no column 'submit'"));
  if (!seen.contains("iterations") && !seen.contains("duration")) {
    return fail(invalid("neither a column 'iterations' nor 'duration'"));
  }
  return heads;
}

// A unit of the column's name counts for all its values, which are plain numbers then.
Status read_values(const std::vector<Head>& heads, std::string_view line, Row& row) {
  const std::vector<std::string> values = split(line);
  if (values.size() != heads.size()) {
    return invalid(fmt::format("{} values for {} columns", values.size(), heads.size()));
  }
  for (std::size_t i = 0; i < heads.size(); ++i) {
    // An empty value stands for the column's default.
    if (values[i].empty()) continue;
    if (heads[i].column->read(values[i] + heads[i].unit, row)) continue;
    const std::string form = heads[i].unit.empty() ? heads[i].column->form
                                                   : fmt::format("a number of {}", heads[i].unit);
    return invalid(fmt::format("column '{}': '{}' is not {}", heads[i].label, values[i], form));
  }
  return {};
}

// Completes the job from its duration. With iterations, the time of one is the duration divided by
// their number, less the gap. Without, their number is the duration divided by the time of one. All
// three given are refused, since they could contradict each other.
Status settle_iterations(Row& row) {
  JobSpec& job = row.job;
  if (!row.duration.has_value()) {
    return row.has_iterations ? Status{} : invalid("neither iterations nor a duration");
  }
  if (row.has_iterations && job.iteration > Nanos{0}) {
    return invalid("iterations, their time and a duration: two of them are enough");
  }
  if (row.has_iterations) {
    if (job.iterations == 0) return invalid("iterations must be 1 or more");
    job.iteration = *row.duration / static_cast<std::int64_t>(job.iterations) - job.gap;
    return {};
  }
  if (job.iteration <= Nanos{0}) job.iteration = kUnknownIteration;
  const double num = to_seconds(*row.duration) / to_seconds(job.iteration + job.gap);
  job.iterations = static_cast<std::uint64_t>(std::max(std::round(num), 1.0));
  return {};
}

// Jobs without a name are called by their number in the trace.
Result<JobSpec> read_row(const std::vector<Head>& heads, std::string_view line, std::size_t n) {
  Row row;
  row.job.name = fmt::format("job{}", n);
  Status status = read_values(heads, line, row);
  if (status.ok()) status = settle_iterations(row);
  if (!row.has_peak) row.job.peak = row.job.live;
  if (status.ok()) status = check(row.job);
  if (!status.ok()) return fail(status);
  return row.job;
}

}  // namespace

// Empty lines and lines that begin with # are left out, and a line may end as on Windows. An error
// names the line.
Result<std::vector<JobSpec>> parse_trace(std::string_view text) {
  std::vector<JobSpec> jobs;
  std::vector<Head> heads;
  std::size_t number = 0;
  for (std::size_t from = 0; from < text.size();) {
    ++number;
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line = text.substr(from, end - from);
    from = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos || line.front() == '#') continue;
    Status status;
    if (heads.empty()) {
      auto read = read_heads(line);
      if (read.has_value()) heads = std::move(*read);
      if (!read.has_value()) status = read.error();
    } else {
      auto job = read_row(heads, line, jobs.size() + 1);
      if (job.has_value()) jobs.push_back(std::move(*job));
      if (!job.has_value()) status = job.error();
    }
    if (!status.ok()) {
      return fail(status.code(), fmt::format("line {}: {}", number, status.message()));
    }
  }
  if (jobs.empty()) return fail(invalid("a trace without jobs"));
  return jobs;
}

}  // namespace gpushare::sim
