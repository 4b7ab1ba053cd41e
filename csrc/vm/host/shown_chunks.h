// Which chunks show bytes of the host tier at their addresses, and how many mappings that takes.
//
// Which problem it solves: a process has some 65,000 mappings, and neighbouring chunks that show
// neighbouring places share one. So the runs are counted, and whoever shows chunks stops in time.
//
// threads: none; the owner's lock covers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "csrc/base/units.h"
#include "csrc/vm/contract/host_place.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {

class ShownChunks {
 public:
  [[nodiscard]] bool is_empty() const { return places_.empty(); }
  [[nodiscard]] bool contains(const std::byte* chunk) const { return places_.contains(chunk); }
  [[nodiscard]] bool has_any(const std::byte* address, Bytes size) const {
    if (is_empty()) return false;
    for (std::size_t at = 0; at < size.to_size(); at += kSize) {
      if (contains(address + at)) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_all(const std::byte* address, Bytes size) const {
    for (std::size_t at = 0; at < size.to_size(); at += kSize) {
      if (!contains(address + at)) return false;
    }
    return true;
  }
  // Mappings needed.
  [[nodiscard]] std::int64_t num_runs() const { return num_runs_; }

  // pre: none of the chunks is shown.
  void add(const std::byte* address, Bytes size, HostPlace place) {
    for (std::size_t at = 0; at < size.to_size(); at += kSize) {
      num_runs_ += 1 - num_joins(address + at, place);
      places_.emplace(address + at, place);
      place.offset += static_cast<std::int64_t>(kSize);
    }
  }
  void remove(const std::byte* address, Bytes size) {
    if (is_empty()) return;
    for (std::size_t at = 0; at < size.to_size(); at += kSize) {
      const auto found = places_.find(address + at);
      if (found == places_.end()) continue;
      num_runs_ -= 1 - num_joins(found->first, found->second);
      places_.erase(found);
    }
  }

 private:
  static constexpr std::size_t kSize = kChunkBytes.to_size();

  // To how many of its neighbours a chunk that shows `place` is joined.
  [[nodiscard]] int num_joins(const std::byte* chunk, const HostPlace& place) const {
    const auto step = static_cast<std::int64_t>(kSize);
    return int{shows(chunk - kSize, {place.fd, place.offset - step})} +
           int{shows(chunk + kSize, {place.fd, place.offset + step})};
  }
  [[nodiscard]] bool shows(const std::byte* chunk, const HostPlace& place) const {
    const auto found = places_.find(chunk);
    return found != places_.end() && found->second == place;
  }

  std::unordered_map<const std::byte*, HostPlace> places_;
  // Invariant: chunks less the pairs of them that are joined.
  std::int64_t num_runs_ = 0;
};

}  // namespace gpushare::vm
