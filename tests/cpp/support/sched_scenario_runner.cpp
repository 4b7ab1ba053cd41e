#include "tests/cpp/support/sched_scenario_runner.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/coordinator.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/limits.h"
#include "csrc/wire/priority.h"

#include "tests/cpp/support/sched_scenario_fields.h"
#include "tests/cpp/support/sched_scenario_print.h"

namespace gpushare::sched::testing {
namespace {

using wire::JobMessage;

// "7:2,8:1": of each user, by number.
std::map<std::uint32_t, std::string> by_user(const std::string& text) {
  std::map<std::uint32_t, std::string> values;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto colon = entry.find(':');
    values[static_cast<std::uint32_t>(std::stoul(entry))] = entry.substr(colon + 1);
  }
  return values;
}

void read_users(ScenarioFields& f, Users& users) {
  for (const auto& [uid, weight] : by_user(f.text("users")))
    users.named[uid].weight = std::stod(weight);
  for (const auto& [uid, share] : by_user(f.text("share_limits")))
    users.named[uid].share_limit = std::stod(share);
  for (const auto& [uid, limit] : by_user(f.text("user_limits")))
    users.named[uid].memory_limit = parse_bytes(limit);
  for (const auto& [uid, is_elastic] : by_user(f.text("elastic")))
    users.named[uid].is_elastic = is_elastic == "1";
  for (const auto& [uid, name] : by_user(f.text("names")))
    users.named[uid].name = name;
}

CoordinatorOptions read_options(ScenarioFields& f) {
  CoordinatorOptions options;
  options.device = f.text("device", options.device);
  options.capacity = f.bytes("capacity", options.capacity);
  options.reserve = f.bytes("reserve");
  options.policy = f.text("policy", options.policy);
  options.num_lanes = static_cast<std::uint32_t>(f.count("num_lanes", options.num_lanes));
  options.pack_lanes = static_cast<std::uint32_t>(f.count("pack_lanes", options.pack_lanes));
  options.min_quantum = f.time("min_quantum", options.min_quantum);
  options.max_wait = f.time("max_wait", options.max_wait);
  options.switch_loss = f.real("switch_loss", options.switch_loss);
  options.class_floor = f.real("class_floor", options.class_floor);
  options.memory_wait = f.time("memory_wait", options.memory_wait);
  options.gap_poll = f.time("gap_poll", options.gap_poll);
  options.iteration_warning = f.time("iteration_warning", options.iteration_warning);
  options.host_budget.ram = f.bytes("host_budget", options.host_budget.ram);
  options.host_budget.file = f.bytes("host_file", options.host_budget.file);
  options.transfer_budget = f.bytes("transfer_budget");
  options.spill_dir = f.text("spill_dir");
  options.lanes = f.count("lanes", options.lanes ? 1 : 0) != 0;
  options.recovery = f.time("recovery", options.recovery);
  read_users(f, options.users);
  std::istringstream pids(f.text("expected_pids"));
  for (std::string pid; std::getline(pids, pid, ',');)
    options.expected_pids.push_back(std::stoi(pid));
  return options;
}

JobMessage read_hello(ScenarioFields& f, JobId job) {
  wire::Hello m;
  m.of = f.address(JobId{0});
  m.protocol = static_cast<std::uint32_t>(f.count("protocol", wire::kProtocolVersion));
  m.pid = static_cast<std::int32_t>(f.number("pid", static_cast<std::int64_t>(job.value) + 100));
  m.uid = static_cast<std::uint32_t>(f.count("uid", 1000));
  m.resident = f.bytes("resident");
  m.spilled = f.bytes("spilled");
  m.spilled_file = f.bytes("spilled_file");
  m.held_term = Term{f.count("held_term")};
  m.lane_epoch = f.count("lane_epoch");
  m.lane_slots = f.slots("lane_slots");
  m.device_total = f.bytes("device_total");
  m.device_free = f.bytes("device_free");
  m.device_piece = f.bytes("device_piece", m.device_piece);
  m.program = f.text("program");
  return m;
}

JobMessage read_register(ScenarioFields& f, JobId job) {
  wire::Register m;
  m.of = f.address(job);
  m.name = f.text("name");
  m.group = f.text("group");
  m.settings.priority =
      wire::parse_priority(f.text("priority", "normal")).value_or(wire::Priority::kNormal);
  m.settings.weight = f.real("weight", 1);
  m.settings.memory_limit = f.bytes("memory_limit");
  m.settings.iterations_total = f.count("iterations_total");
  m.settings.deadline = f.time("deadline");
  m.settings.share_limit = f.real("share_limit", 0);
  m.settings.is_elastic = f.count("elastic", 0) != 0;
  m.fingerprint = f.count("fingerprint");
  if (f.has("paused_by")) m.paused_by = static_cast<std::uint32_t>(f.count("paused_by"));
  return m;
}

JobMessage read_need(ScenarioFields& f, JobId job) {
  wire::Need need{f.address(job), f.count("n"), f.bytes("bytes"), f.bytes("like"),
                  f.count("only_free") != 0};
  const Bytes room = f.bytes("room");
  if (room > Bytes{0}) need.room = room;
  return need;
}

JobMessage read_released(ScenarioFields& f, JobId job) {
  return wire::Released{.of = f.address(job),
                        .n = f.count("n"),
                        .bytes = f.bytes("bytes"),
                        .dropped = f.bytes("dropped"),
                        .spilled = f.bytes("spilled"),
                        .spilled_file = f.bytes("spilled_file"),
                        .spilled_late = f.bytes("late"),
                        .unplaced = f.bytes("unplaced"),
                        .more = f.count("more") != 0,
                        .with_lease = f.count("with_lease") != 0,
                        .need_n = f.count("need_n"),
                        .held = f.count("held") != 0,
                        .reason = f.text("reason")};
}

JobMessage read_lane_changed(ScenarioFields& f, JobId job) {
  return wire::LaneChanged{f.address(job),        f.count("n"),       f.bytes("given"),
                           f.count("num_chunks"), f.slots("donated"), f.slots("returned")};
}

using Reader = std::function<JobMessage(ScenarioFields&, JobId)>;

const std::map<std::string, Reader>& readers() {
  static const std::map<std::string, Reader> kReaders{
      {"hello", read_hello},
      {"register", read_register},
      {"need", read_need},
      {"released", read_released},
      {"lane_changed", read_lane_changed},
      {"unregister", [](auto& f, JobId j) { return wire::Unregister{f.address(j)}; }},
      {"consumed", [](auto& f, JobId j) { return wire::Consumed{f.address(j), f.count("n")}; }},
      {"explain", [](auto& f, JobId j) { return wire::Explain{f.address(j)}; }},
      {"stop", [](auto& /*f*/, JobId /*j*/) { return wire::Stop{}; }},
      {"wanted", [](auto& f, JobId j) { return wire::Wanted{f.address(j), f.usage()}; }},
      {"gave_up", [](auto& f, JobId j) { return wire::GaveUp{f.address(j)}; }},
      {"closed",
       [](auto& f, JobId j) {
         return wire::Closed{f.address(j), Term{f.count("term")}, f.usage()};
       }},
      {"observed", [](auto& f, JobId j) { return wire::Observed{f.address(j), f.usage()}; }},
      {"lost", [](auto& f, JobId j) { return wire::Lost{f.address(j)}; }},
      {"gone", [](auto& f, JobId j) { return wire::Gone{f.address(j)}; }},
  };
  return kReaders;
}

class Runner {
 public:
  // The indented lines for one command line.
  Result<std::string> run(const std::string& line) {
    if (line.starts_with("at ")) {
      now_ = parse_time(line.substr(3));
      if (now_ < Nanos{0}) return fail(StatusCode::kInvalidArgument, "no time");
      return std::string();
    }
    ScenarioFields fields(line);
    auto text = fields.command() == "options" ? create(fields) : act(fields);
    if (!text.has_value()) return text;
    const Status status = fields.status();
    if (!status.ok()) return fail(status);
    return text;
  }

 private:
  Result<std::string> create(ScenarioFields& fields) {
    auto created = Coordinator::create(read_options(fields), now_);
    if (!created.has_value()) return fail(created.error());
    coordinator_ = std::move(*created);
    return std::string();
  }

  Result<std::string> act(ScenarioFields& fields) {
    if (coordinator_ == nullptr) return fail(StatusCode::kInvalidArgument, "no options yet");
    const std::string& command = fields.command();
    if (command == "status") return print(coordinator_->snapshot(now_));
    if (command == "fit") return print_fit(coordinator_->snapshot(now_));
    if (command == "who") {
      const JobId job{fields.count("job")};
      return fmt::format("  {}\n", coordinator_->explain(job, now_));
    }
    if (command == "why") return why(fields);
    if (command == "order") return order(fields);
    if (command == "sharing") {
      return fmt::format("  {} share\n", coordinator_->num_sharing(JobId{fields.count("job")}));
    }
    if (command == "interruptible") {
      const bool may_be = coordinator_->has_interrupter(JobId{fields.count("job")});
      return fmt::format("  {}\n", may_be ? "may be interrupted" : "nobody may interrupt it");
    }
    if (command == "unmanaged") {
      const auto pid = static_cast<std::int32_t>(fields.number("pid"));
      coordinator_->set_unmanaged({{pid, fields.bytes("resident")}});
      return std::string();
    }
    auto ready = step(fields);
    if (!ready.has_value() && is_change(command)) {
      return fmt::format("  refused: {}\n", ready.error().message());
    }
    if (!ready.has_value()) return fail(ready.error());
    coordinator_->check_invariants();
    return print(*ready);
  }

  std::string why(ScenarioFields& fields) {
    const auto why = coordinator_->why(JobId{fields.count("job")}, now_);
    return why.has_value() ? print(*why) : "  no such job\n";
  }

  std::string order(ScenarioFields& fields) {
    std::string text = " ";
    for (const JobId job : coordinator_->order(fields.count("n", 100)))
      text += fmt::format(" {}", job.value);
    return text + "\n";
  }

  Result<Ready> step(ScenarioFields& fields) {
    if (fields.command() == "deadline") return coordinator_->on_deadline(now_);
    if (fields.command() == "pid_gone") {
      const auto pid = static_cast<std::int32_t>(fields.number("pid"));
      return coordinator_->on_expected_pid_gone(pid, now_);
    }
    if (is_change(fields.command())) return change(fields);
    if (fields.command() == "suspend" || fields.command() == "go_on") {
      const bool is_suspended = fields.command() == "suspend";
      return coordinator_->set_suspended(JobId{fields.count("job")}, is_suspended, now_);
    }
    if (fields.command() == "row") return set_row(fields);
    const auto reader = readers().find(fields.command());
    if (reader == readers().end()) {
      return fail(StatusCode::kInvalidArgument, "no such command: " + fields.command());
    }
    const JobId job{fields.count("job")};
    return coordinator_->on_message(job, reader->second(fields, job), now_);
  }

  // Without a step the job is one as any other; until=0: its row is not open.
  Ready set_row(ScenarioFields& fields) {
    std::optional<GangRow> row;
    if (fields.has("until")) {
      const std::uint64_t until = fields.count("until");
      row = {until, until == 0 ? std::string("waits with its gang for its row")
                               : fmt::format("its row is open until step {}", until)};
    }
    return coordinator_->set_row(JobId{fields.count("job")}, std::move(row), now_);
  }

  static bool is_change(const std::string& command) {
    return command == "set" || command == "pause" || command == "resume" || command == "policy";
  }

  Result<Ready> change(ScenarioFields& fields) {
    if (fields.command() == "policy") return coordinator_->set_policy(fields.text("name"), now_);
    wire::Changes changes;
    if (fields.has("priority")) changes.priority = wire::parse_priority(fields.text("priority"));
    if (fields.has("weight")) changes.weight = fields.real("weight");
    if (fields.has("memory_limit")) changes.memory_limit = fields.bytes("memory_limit");
    if (fields.has("deadline")) changes.deadline = fields.time("deadline");
    if (fields.has("elastic")) changes.is_elastic = fields.count("elastic") != 0;
    if (fields.has("share_limit")) changes.share_limit = fields.real("share_limit");
    if (fields.command() != "set") changes.is_paused = fields.command() == "pause";
    return coordinator_->set(JobId{fields.count("job")}, changes, requester(fields), now_);
  }

  // Without a user, one who may change all.
  static Requester requester(ScenarioFields& fields) {
    return {.uid = static_cast<std::uint32_t>(fields.count("by")),
            .may_change_all = !fields.has("by")};
  }

  std::unique_ptr<Coordinator> coordinator_;
  Nanos now_;
};

}  // namespace

Result<std::string> rewrite_scenario(const std::string& text) {
  Runner runner;
  std::istringstream lines(text);
  std::string rewritten;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("  ")) continue;
    rewritten += line + "\n";
    if (line.empty() || line.starts_with("#")) continue;
    auto said = runner.run(line);
    if (!said.has_value()) {
      return fail(said.error().code(),
                  fmt::format("line {}: {}: {}", number, line, said.error().message()));
    }
    rewritten += *said;
  }
  return rewritten;
}

}  // namespace gpushare::sched::testing
