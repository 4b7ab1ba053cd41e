// Looks up the number of a host's name without keeping the event loop waiting: the system's
// resolver may take seconds, and has no other way to be asked.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

#include "csrc/base/status.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/stream.h"

namespace gpushare::daemon {

class LookUp {
 public:
  explicit LookUp(ipc::EventLoop& loop) : loop_(loop) {}
  // Waits for a look-up that is under way.
  ~LookUp();
  LookUp(const LookUp&) = delete;
  LookUp& operator=(const LookUp&) = delete;

  // Calls back on the loop's thread, after this call. If the name has several numbers, each call
  // takes the next. pre: none is under way.
  void begin(const ipc::StreamAddress& address,
             std::function<void(Result<ipc::StreamAddress>)> on_found);

 private:
  ipc::EventLoop& loop_;
  std::size_t turn_ = 0;
  std::thread thread_;
};

}  // namespace gpushare::daemon
