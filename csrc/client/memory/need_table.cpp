// The open requests for room. A request stays in the table until its owner takes the answer, even
// if the answer came long before. A request for free room only is never sent again and counts for
// nothing else: its owner goes on without it.
#include "csrc/client/memory/need_table.h"

#include <algorithm>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::client {

std::uint64_t NeedTable::add(Bytes bytes, Bytes like) {
  const std::uint64_t n = next_++;
  entries_.emplace(n, Entry{.bytes = bytes, .like = like, .spilled = {}, .answer = {}});
  return n;
}

std::uint64_t NeedTable::add_only_free(Bytes bytes, Bytes like) {
  const std::uint64_t n = add(bytes, like);
  entries_.at(n).only_free = true;
  return n;
}

bool NeedTable::is_waiting(std::uint64_t n) const {
  const auto found = entries_.find(n);
  return found != entries_.end() && !found->second.is_answered;
}

bool NeedTable::has_waiting() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.is_waited_for(); });
}

Status NeedTable::take(std::uint64_t n) {
  const auto found = entries_.find(n);
  GS_CHECK(found != entries_.end(), "need {} was taken before", n);
  const Entry entry = std::move(found->second);
  entries_.erase(found);
  if (entry.is_answered) return entry.answer;
  return {StatusCode::kDeadlineExceeded,
          "the coordinator has not answered a request for " + to_string(entry.bytes) + " of room"};
}

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

std::uint64_t NeedTable::oldest() const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [](const auto& entry) { return entry.second.is_waited_for(); });
  return found == entries_.end() ? 0 : found->first;
}

bool NeedTable::add_given(std::uint64_t n, Bytes bytes, Bytes spilled) {
  const auto found = entries_.find(n);
  if (found == entries_.end() || !found->second.is_waited_for()) return false;
  Entry& entry = found->second;
  entry.bytes += bytes;
  entry.like += bytes;
  entry.spilled += spilled;
  return true;
}

std::vector<wire::Need> NeedTable::take_back_spilled(const wire::Address& of) {
  std::vector<wire::Need> changed;
  for (auto& [n, entry] : entries_) {
    if (!entry.is_waited_for() || entry.spilled == Bytes{0}) continue;
    entry.bytes -= entry.spilled;
    entry.like -= entry.spilled;
    entry.spilled = Bytes{0};
    changed.push_back(wire::Need{.of = of, .n = n, .bytes = entry.bytes, .like = entry.like});
  }
  return changed;
}

// The job has become unmanaged: all waits end without an error, and their owners look at the room
// again.
void NeedTable::grant_all() {
  for (auto& [n, entry] : entries_)
    entry.is_answered = true;
}

std::vector<wire::Need> NeedTable::waiting(const wire::Address& of) const {
  std::vector<wire::Need> needs;
  for (const auto& [n, entry] : entries_) {
    if (!entry.is_waited_for()) continue;
    needs.push_back(wire::Need{.of = of, .n = n, .bytes = entry.bytes, .like = entry.like});
  }
  return needs;
}

}  // namespace gpushare::client
