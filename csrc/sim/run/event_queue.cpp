// A heap that knows where each source's entry is, so set() moves an event in place. The heap has
// four children an entry. put() writes an entry and notes its place together, so the two never
// disagree.
#include "csrc/sim/run/event_queue.h"

#include <algorithm>
#include <limits>

namespace gpushare::sim {
namespace {

constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();
// Children of an entry: with four the heap is half as deep, and they are side by side in memory.
constexpr std::size_t kArity = 4;

}  // namespace

// Each source has one entry of each of its kinds at most, so the places are a table and nothing is
// searched.
EventQueue::EventQueue(std::size_t num_jobs, std::size_t num_devices) {
  for (const EventKind kind : {EventKind::kWake, EventKind::kReleased})
    places_[static_cast<std::size_t>(kind)].resize(num_jobs, kNoPlace);
  for (const EventKind kind : {EventKind::kDeadline, EventKind::kLook})
    places_[static_cast<std::size_t>(kind)].resize(num_devices, kNoPlace);
  for (const EventKind kind : {EventKind::kRows, EventKind::kRound})
    places_[static_cast<std::size_t>(kind)].resize(1, kNoPlace);
}

// The only function that writes an entry.
void EventQueue::put(std::size_t place, const Entry& entry) {
  heap_[place] = entry;
  place_of(entry.event) = place;
}

// Moves entries that are later than `entry` down, from `place` towards the root, and puts it there.
void EventQueue::rise(std::size_t place, const Entry& entry) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / kArity;
    if (entry > heap_[parent]) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, entry);
}

// Moves entries that are earlier than `entry` up, from `place` towards the leaves, and puts it
// there.
void EventQueue::sink(std::size_t place, const Entry& entry) {
  for (;;) {
    const std::size_t first = place * kArity + 1;
    if (first >= heap_.size()) break;
    const std::size_t end = std::min(first + kArity, heap_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child] < heap_[least]) least = child;
    }
    if (heap_[least] > entry) break;
    put(place, heap_[least]);
    place = least;
  }
  put(place, entry);
}

// An event that is there already moves up or down from where it is.
void EventQueue::set(EventKind kind, std::size_t of, Nanos at) {
  const Entry entry{at, {kind, of}};
  const std::size_t place = place_of(entry.event);
  if (place == kNoPlace) {
    heap_.push_back(entry);
    rise(heap_.size() - 1, entry);
  } else if (entry < heap_[place]) {
    rise(place, entry);
  } else {
    sink(place, entry);
  }
}

// The last entry takes the root's place and sinks. Then the source is free: set() may add it again.
Event EventQueue::pop() {
  const Entry first = heap_.front();
  const Entry last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sink(0, last);
  place_of(first.event) = kNoPlace;
  now_ = first.at;
  return first.event;
}

}  // namespace gpushare::sim
