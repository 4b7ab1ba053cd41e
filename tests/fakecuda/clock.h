// How much of each stream's work something comes after: a vector clock, one count for each stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fakecuda {

using StreamNumber = uint32_t;

class Clock {
 public:
  // Whether the stream's piece of work with this number comes before.
  [[nodiscard]] bool covers(StreamNumber stream, uint64_t number) const {
    return stream < counts_.size() && counts_[stream] >= number;
  }
  void advance(StreamNumber stream, uint64_t number) {
    if (stream >= counts_.size()) counts_.resize(stream + 1);
    counts_[stream] = std::max(counts_[stream], number);
  }
  void join(const Clock& other) {
    if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i) {
      counts_[i] = std::max(counts_[i], other.counts_[i]);
    }
  }

 private:
  std::vector<uint64_t> counts_;
};

}  // namespace fakecuda
