// The open requests for room. A request stays in the table until its owner takes the answer, even
// if the answer came long before. A request for free room only is never sent again and counts for
// nothing else: its owner goes on without it.
#include "csrc/client/memory/need_table.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::client {

std::uint64_t NeedTable::add(const alloc::RoomRequest& request) {
  const std::uint64_t n = next_++;
  entries_.emplace(n, Entry{.request = request, .away = {}, .answer = {}});
  return n;
}

wire::Need NeedTable::message(std::uint64_t n, const wire::Address& of) const {
  const alloc::RoomRequest& request = entries_.at(n).request;
  return {.of = of,
          .n = n,
          .bytes = request.bytes,
          .like = request.like,
          .only_free = request.patience == alloc::Patience::kOnlyFree,
          .room = request.room};
}

bool NeedTable::is_waiting(std::uint64_t n) const {
  const auto found = entries_.find(n);
  return found != entries_.end() && !found->second.is_answered;
}

bool NeedTable::has_waiting() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.is_waited_for(); });
}

// Without an answer the owner's patience is at its end. An answer that comes later finds no entry,
// and is about nobody any more.
Status NeedTable::take(std::uint64_t n) {
  const auto found = entries_.find(n);
  GS_CHECK(found != entries_.end(), "need {} was taken before", n);
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  if (entry.is_answered) return entry.answer;
  return {StatusCode::kDeadlineExceeded, "the coordinator has not answered a request for " +
                                             to_string(entry.request.bytes) + " of room"};
}

// The grant is in force even where nobody waits for it any more.
void NeedTable::on_grant(std::uint64_t grant_n, std::uint64_t need_n) {
  last_grant_ = std::max(last_grant_, grant_n);
  const auto found = entries_.find(need_n);
  if (found != entries_.end()) found->second.is_answered = true;
}

void NeedTable::on_denied(std::uint64_t need_n, const std::string& reason) {
  const auto found = entries_.find(need_n);
  if (found == entries_.end()) return;
  found->second.is_answered = true;
  found->second.answer = Status(StatusCode::kOutOfMemory, reason);
}

// Numbers rise, so the first entry is the oldest. 0 is no number.
std::uint64_t NeedTable::oldest() const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [](const auto& entry) { return entry.second.is_waited_for(); });
  return found == entries_.end() ? 0 : found->first;
}

// The job's room is lower by the bytes that it gives, so what the request wants in all stays.
bool NeedTable::add_given(std::uint64_t n, Bytes bytes, Bytes away) {
  const auto found = entries_.find(n);
  if (found == entries_.end() || !found->second.is_waited_for()) return false;
  alloc::RoomRequest& request = found->second.request;
  request.bytes += bytes;
  request.like += bytes;
  request.room -= bytes;
  found->second.away += away;
  return true;
}

// The requests become smaller by what the restore will ask for, so that nobody asks twice.
std::vector<wire::Need> NeedTable::take_back_away(const wire::Address& of) {
  std::vector<wire::Need> changed;
  for (auto& [n, entry] : entries_) {
    if (!entry.is_waited_for() || entry.away == Bytes{0}) continue;
    entry.request.bytes -= entry.away;
    entry.request.like -= entry.away;
    entry.away = Bytes{0};
    changed.push_back(message(n, of));
  }
  return changed;
}

// The job has become unmanaged: all waits end without an error, and their owners look at the room
// again.
void NeedTable::grant_all() {
  for (auto& [n, entry] : entries_)
    entry.is_answered = true;
}

// For a new connection, whose coordinator knows of none.
std::vector<wire::Need> NeedTable::waiting(const wire::Address& of) const {
  std::vector<wire::Need> needs;
  for (const auto& [n, entry] : entries_) {
    if (entry.is_waited_for()) needs.push_back(message(n, of));
  }
  return needs;
}

}  // namespace gpushare::client
