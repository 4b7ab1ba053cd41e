// Turns what a policy knows of a job into fields of a message, and back.
//
// Times of a host's clock are not sent, since they mean nothing on another host: the arbiter gives
// its own time since when a job waits. Numbers are cut to bounds on both sides. A host may be of
// another version, or lie, and the order of rows must neither overflow nor meet a NaN.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "csrc/arbiter/messages.h"

namespace gpushare::arbiter {
namespace {

// More than any job needs: the order of rows multiplies and adds these up.
constexpr double kMostToGo = 1e12;
constexpr double kMostWeight = 1e9;

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Cuts the part before the separator off the text, and returns it.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

}  // namespace

Contender contender_of(const sched::Standing& standing, sched::Setback setback) {
  return {.priority = standing.priority,
          .weight = standing.weight,
          .setback = static_cast<std::uint32_t>(setback),
          .deadline = standing.deadline,
          .served = standing.served,
          .iterations_to_go =
              static_cast<std::uint64_t>(std::clamp(standing.iterations_to_go, 0.0, kMostToGo)),
          .iteration = standing.iteration};
}

// What only the machine of a device counts, such as arrivals and virtual time, stays 0 here. Rows
// put figures of their own in its place (Contest::key()).
sched::Standing standing_of(const Contender& contender, Nanos since) {
  sched::Standing standing;
  standing.priority = contender.priority;
  standing.weight = contender.weight;
  standing.deadline = contender.deadline;
  standing.served = contender.served;
  standing.iterations_to_go = std::min(static_cast<double>(contender.iterations_to_go), kMostToGo);
  standing.iteration = contender.iteration;
  standing.registered_at = standing.waiting_since = since;
  return standing;
}

// A number that this version does not know counts as the worst one. A limit is then never ignored.
sched::Setback setback_of(const Contender& contender) {
  return static_cast<sched::Setback>(
      std::min(contender.setback, static_cast<std::uint32_t>(sched::Setback::kBarred)));
}

// Users beyond kMaxUsers are left out: a frame has a greatest length.
std::string weights_text(const std::map<std::uint32_t, double>& weights) {
  std::string text;
  std::size_t num = 0;
  for (const auto& [user, weight] : weights) {
    if (num++ == kMaxUsers) break;
    text += fmt::format("{}{}:{:.6g}", text.empty() ? "" : ",", user, weight);
  }
  return text;
}

Result<std::map<std::uint32_t, double>> read_weights(const std::string& text) {
  std::map<std::uint32_t, double> weights;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view pair = take_until(rest, ',');
    std::uint32_t user = 0;
    double weight = 0;
    const bool is_read = read_number(take_until(pair, ':'), user) && read_number(pair, weight);
    // The comparisons are written so that they are false for a NaN as well.
    if (!is_read || !(weight > 0 && weight <= kMostWeight) || weights.size() >= kMaxUsers)
      return fail(StatusCode::kProtocol, "weights of single jobs that are none");
    weights[user] = weight;
  }
  return weights;
}

}  // namespace gpushare::arbiter
