#include "tests/cpp/support/sched_scenario_print.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/job/admission.h"

namespace gpushare::sched::testing {
namespace {

std::string seconds_text(Nanos time) { return fmt::format("{:.3f}s", to_seconds(time)); }

std::string text_of(const wire::Welcome& m) {
  return fmt::format("welcome job={} room={} capacity={}", m.of.job.value, to_string(m.room),
                     to_string(m.capacity));
}
// RAM, and a file where there is one.
std::string text_of(const HostBytes& bytes) {
  if (bytes.file == Bytes{}) return to_string(bytes.ram);
  return fmt::format("{}+{}", to_string(bytes.ram), to_string(bytes.file));
}
std::string text_of(const wire::Registered& /*m*/) { return "registered"; }
std::string text_of(const wire::Grant& m) {
  return fmt::format("grant n={} need_n={} room={}", m.n, m.need_n, to_string(m.room));
}
std::string numbers(const std::vector<std::uint32_t>& slots) {
  return fmt::format("{}", fmt::join(slots, ","));
}
std::string text_of(const wire::LaneTable& m) {
  return fmt::format("lane_table n={} slots={}", m.n, numbers(m.slots));
}
std::string text_of(const wire::Revoke& m) {
  std::string text =
      fmt::format("revoke n={} bytes={} most={}", m.n, to_string(m.bytes), to_string(m.most_ram));
  if (m.most_file > Bytes{}) text += fmt::format("+{}", to_string(m.most_file));
  return text;
}
std::string text_of(const wire::Denied& m) { return fmt::format("denied n={}: {}", m.n, m.reason); }
std::string text_of(const wire::Close& m) { return fmt::format("close term={}", m.term.value); }
std::string text_of(const wire::Changed& m) {
  const wire::Changes& changes = m.changes;
  std::string text = "changed";
  if (changes.priority) text += fmt::format(" priority={}", wire::name_of(*changes.priority));
  if (changes.weight) text += fmt::format(" weight={}", *changes.weight);
  if (changes.memory_limit) {
    text += fmt::format(" memory_limit={}", to_string(*changes.memory_limit));
  }
  if (changes.deadline) text += fmt::format(" deadline={}", to_string(*changes.deadline));
  if (changes.is_elastic) text += fmt::format(" elastic={}", *changes.is_elastic ? 1 : 0);
  if (changes.share_limit) text += fmt::format(" share_limit={}", *changes.share_limit);
  if (changes.is_paused) text += fmt::format(" paused={} by={}", *changes.is_paused, m.by);
  return text;
}
std::string text_of(const wire::Explained& m) { return fmt::format("explained: {}", m.text); }
std::string text_of(const wire::Refused& m) { return fmt::format("refused: {}", m.reason); }
std::string text_of(const wire::StatusReport& /*m*/) { return "status report"; }
std::string text_of(const wire::Placed& m) { return "placed on " + m.device; }

std::string text_of(const PageAction& action) {
  if (action.kind == PageAction::Kind::kAsk) {
    return fmt::format("page {} ask term={}", action.job.value, action.term.value);
  }
  if (action.kind == PageAction::Kind::kAskInside) {
    return fmt::format("page {} ask_inside term={}", action.job.value, action.term.value);
  }
  if (action.kind == PageAction::Kind::kShareCores) {
    return fmt::format("page {} cores {}/{}", action.job.value, action.cores.number,
                       action.cores.of);
  }
  if (action.kind == PageAction::Kind::kSayProgram) {
    return fmt::format("page {} program_waiting={}", action.job.value,
                       action.is_program_waiting ? 1 : 0);
  }
  return fmt::format("page {} grant term={} grant_n={}", action.job.value, action.term.value,
                     action.grant_n);
}

std::string text_of(const JobRow& job) {
  std::string text = fmt::format("job {} {} {} room={} leases={} served={} waited={} share={:.2f}",
                                 job.who.of.job.value, job.who.name.empty() ? "-" : job.who.name,
                                 job.state, to_string(job.room), job.leases,
                                 seconds_text(job.served), seconds_text(job.waited), job.share);
  if (job.transfer_rate > Bytes{}) text += fmt::format(" rate={}/s", to_string(job.transfer_rate));
  if (job.in_lane != LaneId{0}) text += fmt::format(" lane={}", job.in_lane.value);
  return text;
}

std::string text_of(const LaneRow& lane) {
  return fmt::format("lane {} holder={} next={} quantum={} ends={} loss={:.3f}", lane.lane.value,
                     lane.holder.value, lane.next.value, to_string(lane.quantum),
                     seconds_text(lane.quantum_ends), lane.switch_loss) +
         (lane.pool > Bytes{} ? fmt::format(" pool={}", to_string(lane.pool)) : "");
}

}  // namespace

std::string print(const Ready& ready) {
  std::string text;
  for (const LaneAction& action : ready.lane_actions) {
    if (action.ends) {
      text += fmt::format("  pool of {} ends\n", action.uid);
    } else if (action.only.has_value()) {
      const std::vector<std::uint32_t> only(action.only->begin(), action.only->end());
      text += fmt::format("  only {} of {} stay\n", numbers(only), action.uid);
    } else {
      text += fmt::format("  empty {} of {}\n", numbers(action.empty), action.uid);
    }
  }
  for (const Outbound& out : ready.messages) {
    const std::string message = std::visit([](const auto& m) { return text_of(m); }, out.message);
    text += fmt::format("  -> {} {}\n", out.to.value, message);
  }
  for (const PageAction& action : ready.page_actions)
    text += fmt::format("  {}\n", text_of(action));
  for (const Decision& decision : ready.decisions) {
    text += fmt::format("  why {} {}: {}\n", decision.job.value, decision.what, decision.reason);
  }
  if (ready.next_deadline.has_value()) {
    text += fmt::format("  deadline {}", seconds_text(*ready.next_deadline));
    for (const JobId job : ready.observe)
      text += fmt::format(" observe {}", job.value);
    text += "\n";
  }
  return text;
}

std::string print(const Snapshot& snapshot) {
  std::string text;
  if (snapshot.is_recovering) text += "  recovering\n";
  for (const DeviceRow& device : snapshot.devices) {
    text += fmt::format(
        "  device {} {} capacity={} free={} switches={} handover={} dropped={} spilled={}\n",
        device.device, device.policy, to_string(device.capacity), to_string(device.free),
        device.switches, to_string(device.last_handover), to_string(device.dropped),
        to_string(device.spilled));
    text += fmt::format("  busy={:.2f} host={}/{}\n", device.busy, text_of(device.host_used),
                        text_of(device.host_budget));
    for (const std::string& warning : device.warnings)
      text += fmt::format("  warning {}\n", warning);
    for (const LaneRow& lane : device.lanes)
      text += fmt::format("  {}\n", text_of(lane));
    for (const JobRow& job : device.jobs)
      text += fmt::format("  {}\n", text_of(job));
  }
  return text;
}

std::string print(const Why& why) {
  std::string text = fmt::format("  {} {} is {}: {}\n  decided: {}\n", why.job.value, why.name,
                                 why.state, why.explain, why.decision);
  for (const std::string& line : why.now)
    text += fmt::format("  now: {}\n", line);
  for (const std::string& line : why.order)
    text += fmt::format("  order: {}\n", line);
  for (const std::string& line : why.changes)
    text += fmt::format("  would change it: {}\n", line);
  return text;
}

std::string print_fit(const Snapshot& snapshot) {
  std::string text;
  for (const DeviceRow& device : snapshot.devices) {
    Admission sums(device.capacity);
    std::string jobs;
    for (const JobRow& job : device.jobs) {
      const auto sizes = sizes_of(job.usage, job.lane);
      if (job.is_registered) sums.add(sizes);
      if (!sizes.has_value()) continue;
      jobs += fmt::format("  job {} persistent={} ephemeral={}\n", job.who.of.job.value,
                          to_string(sizes->persistent), to_string(sizes->ephemeral));
    }
    text +=
        fmt::format("  fit {} persistent={} ephemeral={} largest={} unknown={}\n",
                    name_of(sums.fit()), to_string(sums.persistent()), to_string(sums.ephemeral()),
                    to_string(sums.largest_ephemeral()), sums.num_unknown()) +
        jobs;
  }
  return text;
}

}  // namespace gpushare::sched::testing
