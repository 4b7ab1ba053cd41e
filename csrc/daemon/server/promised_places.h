// Processes that have been told on which CUDA device they are to be, and have not said Hello yet.
//
// Which problem it solves: several programs that are started at once ask before any of them has a
// job. Each would be sent to the device that was empty when it asked.
//
// A promise ends when its process says Hello or is gone, or when a child of it asks: what asked
// first was a launcher then. It ends after two minutes in any case: a program that only starts
// others may live for days and never use a device.
//
// What it does not do: it keeps no device free. It only counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::daemon {

class PromisedPlaces {
 public:
  // A user's oldest promise ends for one more.
  static constexpr std::size_t kMostOfUser = 64;
  static constexpr Nanos kLongest = seconds(120);

  // Replaces what this process was promised before.
  void promise(std::int32_t pid, std::uint32_t user, std::string device, Nanos now);
  // Does nothing for a process without one.
  void end(std::int32_t pid);
  // How many processes are to come there. Promises that are over have ended before.
  std::size_t num_on(const std::string& device, Nanos now);
  // How many there are in all.
  std::size_t num(Nanos now);

 private:
  struct Promise {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;  // with the pid it is one process for good
    std::uint32_t user = 0;
    std::string device;
    Nanos made_at;
    Nanos looked_at;  // when its process was seen last
  };

  // Looks at a process at most so often: a user may have many, and ask often.
  static constexpr Nanos kLookEvery = millis(200);

  static bool is_over(Promise& promise, Nanos now);
  void forget_ended(Nanos now);

  std::vector<Promise> promises_;  // the oldest first
};

}  // namespace gpushare::daemon
