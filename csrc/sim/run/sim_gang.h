// The ranks of one simulated job that computes on several devices. They step together: a step
// begins when every rank has its lease and its room, and ends when the slowest rank has ended it.
//
//   a rank is ready ---the last one is---> all step ---one leaves at a boundary---> they wait for
//   it
//
// While all step, their boundaries are at the same times, so each rank counts its own by arithmetic
// (iterations.h) and the gang needs no event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gpushare::sim {

class SimJob;

class SimGang {
 public:
  // `number` tells the gangs of a simulation apart. `has_rows`: its ranks run in rows; otherwise
  // each is a job of its own for its coordinator, on a device that it does not share.
  SimGang(std::size_t number, bool has_rows);
  // pre: once, before any rank arrives. `ranks` must outlive the gang.
  void set_ranks(std::span<SimJob> ranks) { ranks_ = ranks; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has_rows() const { return has_rows_; }
  [[nodiscard]] std::span<SimJob> ranks() const { return ranks_; }
  // Every rank is in a step, or in the gap between two.
  [[nodiscard]] bool is_stepping() const { return is_stepping_; }
  // How many times as long the slowest rank takes as it would alone.
  [[nodiscard]] double slowdown() const;

  // One more rank has all that its next step needs. The last of them begins the step for all.
  void note_ready();
  // A rank does not begin the next step with the others, which wait for it there. No-op if they do
  // so already.
  void part();
  // A rank has become slower or faster.
  void retime();
  // A rank was refused room: the program ends, so all others do.
  void deny();

 private:
  std::string name_;
  bool has_rows_;
  std::span<SimJob> ranks_;
  std::size_t num_ready_ = 0;  // ranks that wait for others. Invariant: 0 while all step.
  bool is_stepping_ = false;
};

}  // namespace gpushare::sim
