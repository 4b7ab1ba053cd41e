// A dispatcher decides which job gets which devices where jobs do not share them. Each device has
// one job at a time, and all devices have one queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpushare::sim {

class Dispatcher {
 public:
  struct Start {
    std::size_t job = 0;
    std::vector<std::size_t> devices;
  };

  virtual ~Dispatcher() = default;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // The job waits for devices. pre: one at least, and no more than there are (of one kind, where
  // its devices have to be so).
  virtual void push(std::size_t job, std::size_t num_devices) = 0;
  // The device has no job any more.
  virtual void note_idle(std::size_t device) = 0;
  // The next job to start, and its devices: both leave the queue. Nothing: none can start now.
  virtual std::optional<Start> start() = 0;
  // EventKind::kRound has come, which only a dispatcher that sets it gets.
  virtual void on_round() {}
  // How often a job was told to leave its devices before it had ended.
  [[nodiscard]] virtual std::uint64_t num_moves() const { return 0; }

 protected:
  Dispatcher() = default;
};

}  // namespace gpushare::sim
