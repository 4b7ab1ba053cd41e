// Makes a status fit into one message.
//
// A text that is too long is shortened in steps: old decisions, neighbours, command lines, and last
// jobs from the end. Each step makes the text anew and looks whether it fits. How many jobs were
// left out is said.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "csrc/daemon/server/status_report.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/coordinator_messages.h"
#include "csrc/wire/limits.h"

namespace gpushare::daemon {
namespace {

// Whether the text, quoted as it will be in a message, is short enough for a packet.
bool fits(const std::string& text) {
  return wire::encode(wire::StatusReport{text}).size() <= wire::kMaxMessageBytes;
}

// Leaves out the next part, from what is missed least to what is missed most. false: nothing is
// left to leave out. `length` is that of the text now.
bool shorten(StatusFacts& facts, std::size_t length, std::uint64_t& jobs_left_out) {
  if (length > 2 * wire::kMaxMessageBytes && !std::exchange(facts.decisions, {}).empty()) {
    return true;
  }
  if (!facts.decisions.empty()) {
    const auto half = static_cast<std::ptrdiff_t>((facts.decisions.size() + 1) / 2);
    facts.decisions.erase(facts.decisions.begin(), facts.decisions.begin() + half);
    return true;
  }
  if (!std::exchange(facts.neighbours.found, {}).empty()) return true;
  bool had_commands = false;
  for (sched::DeviceRow& device : facts.snapshot.devices) {
    for (sched::JobRow& row : device.jobs) {
      had_commands |= !std::exchange(row.who.command, "").empty();
    }
  }
  if (had_commands) return true;
  for (sched::DeviceRow& device : facts.snapshot.devices) {
    if (device.jobs.empty()) continue;
    // About as many as fit, and fewer each time.
    const std::size_t all = device.jobs.size();
    const std::size_t rest = std::min(all - 1, all * wire::kMaxMessageBytes / length * 9 / 10);
    jobs_left_out += all - rest;
    device.jobs.resize(rest);
    return true;
  }
  return false;
}

}  // namespace

// A shorter text is made from the facts again and not cut, so that it is always whole JSON.
// `jobs_left_out` tells the reader that the list has an end of ours.
std::string bounded_status_text(StatusFacts facts) {
  std::uint64_t jobs_left_out = 0;
  std::string text = status_text(facts);
  while (!fits(text) && shorten(facts, text.size(), jobs_left_out)) {
    text = status_text(facts, jobs_left_out);
  }
  return text;
}

}  // namespace gpushare::daemon
