#include "tests/fakecuda/work.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

namespace fakecuda {
namespace {

// How often a program that only asks is told "not ready".
constexpr int kAsksUntilReady = 3;

std::string text_of(Range range) {
  char text[64];
  std::snprintf(text, sizeof text, "[%#zx, +%zu)", range.begin, range.bytes);
  return text;
}

const Range* overlap(const std::vector<Range>& some, const std::vector<Range>& others) {
  for (const Range& range : some) {
    for (const Range& other : others) {
      if (range.overlaps(other)) return &range;
    }
  }
  return nullptr;
}

// Whether what was put off of the first must be done before the second is.
bool holds_up(const Operation& first, const Operation& second) {
  if (!first.later) return false;
  return overlap(second.reads, first.writes) != nullptr ||
         overlap(second.writes, first.writes) != nullptr ||
         (!first.has_read && overlap(second.writes, first.reads) != nullptr);
}

// What the second must not do before the first is complete, in words. Empty: they may overtake.
std::string conflict(const Operation& first, const Operation& second) {
  if (const Range* range = overlap(second.reads, first.writes)) {
    return "reads " + text_of(*range) + ", which is written by ";
  }
  if (const Range* range = overlap(second.writes, first.writes)) {
    return "writes " + text_of(*range) + ", which is written by ";
  }
  if (const Range* range = overlap(second.writes, first.reads)) {
    return "writes " + text_of(*range) + ", which is read by ";
  }
  return "";
}

std::string on_stream(const std::string& name, StreamNumber stream) {
  return name + " on stream " + std::to_string(stream);
}

}  // namespace

CUresult Work::submit(Stream& stream, Operation operation) {
  Place place;
  const CUresult result = begin(stream, std::move(operation), &place);
  if (result == CUDA_SUCCESS) end(place);
  return result;
}

CUresult Work::begin(Stream& stream, Operation operation, Place* place) {
  const bool is_late = is_late_ && stream.capture.id == 0;
  streams_.join_default(stream);
  wait_for_running(
      [&](const Pending& running) { return !conflict(running.operation, operation).empty(); });
  for (const Pending& pending : pending_) {
    if (stream.behind.covers(pending.stream, pending.number)) continue;
    const std::string what = conflict(pending.operation, operation);
    if (what.empty()) continue;
    violations_.add(on_stream(operation.name, stream.number) + " " + what +
                    on_stream(pending.operation.name, pending.stream) + ", not ordered before it");
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  // What is put off comes in its turn.
  const bool is_put_off = operation.later && !operation.at_once;
  if (!is_put_off) carry_out_before(operation, pending_.end());
  if (operation.at_once) operation.at_once();
  stream.behind.advance(stream.number, ++stream.num_submitted);
  stream.num_asks = 0;
  pending_.push_back({stream.number, stream.num_submitted, std::move(operation), true, is_late});
  *place = std::prev(pending_.end());
  return CUDA_SUCCESS;
}

void Work::end(Place place) {
  place->is_running = false;
  if (!place->is_late) {
    carry_out(place);
    pending_.erase(place);
  }
  ended_.notify_all();
}

void Work::wait_for_running(const std::function<bool(const Pending&)>& concerns) {
  ended_.wait(mutex_, [&] {
    return std::none_of(pending_.begin(), pending_.end(), [&](const Pending& pending) {
      return pending.is_running && concerns(pending);
    });
  });
}

void Work::carry_out_before(const Operation& operation, Place end) {
  for (auto place = pending_.begin(); place != end; ++place) {
    if (holds_up(place->operation, operation)) carry_out(place);
  }
}

void Work::carry_out(Place place) {
  if (!place->operation.later) return;
  const std::function<void()> later = std::exchange(place->operation.later, nullptr);
  carry_out_before(place->operation, place);
  later();
}

void Work::complete(Clock clock) {
  wait_for_running(
      [&](const Pending& running) { return clock.covers(running.stream, running.number); });
  for (auto place = pending_.begin(); place != pending_.end();) {
    if (!clock.covers(place->stream, place->number)) {
      ++place;
      continue;
    }
    carry_out(place);
    place = pending_.erase(place);
  }
}

void Work::complete(Stream& stream) {
  streams_.join_default(stream);
  complete(stream.behind);
}

void Work::complete_all() {
  Clock all;
  streams_.for_each([&](const Stream& stream) { all.join(stream.behind); });
  complete(std::move(all));
}

bool Work::is_complete(const Clock& clock) const {
  return std::none_of(pending_.begin(), pending_.end(), [&](const Pending& pending) {
    return clock.covers(pending.stream, pending.number);
  });
}

bool Work::ask(const Clock& clock, int& num_asks) {
  if (!is_complete(clock)) {
    if (num_asks++ < kAsksUntilReady) return false;
    complete(clock);
  }
  num_asks = 0;
  return true;
}

CUresult Work::check_idle(const std::string& who, Range range) {
  Operation taking;
  taking.writes = {range};
  for (const Pending& pending : pending_) {
    const std::string what = conflict(pending.operation, taking);
    if (what.empty()) continue;
    violations_.add(who + " takes away " + text_of(range) + ", which is used by " +
                    on_stream(pending.operation.name, pending.stream) +
                    ", not known to be complete");
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  return CUDA_SUCCESS;
}

void Work::set_late(bool is_late) {
  if (!is_late) complete_all();
  is_late_ = is_late;
}

}  // namespace fakecuda
