// One background thread that closes descriptors handed over by close_elsewhere(). The thread starts
// with the first descriptor and runs until the process ends. Descriptors wait in a list under the
// lock. They are closed without it, so that a slow close() delays nobody who hands over more.
//
// What may go wrong: the thread cannot be started. Then the descriptors stay in the list, and the
// next call tries to start it again.
#include "csrc/ipc/closer.h"

#include <sys/socket.h>

#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/log.h"
#include "csrc/base/mutex.h"
#include "csrc/base/process/start_thread.h"

namespace gpushare::ipc {
namespace {

// A list of descriptors and a thread that closes them, one after the other. If one close takes
// long, those behind it wait, and nobody else.
class Closer {
 public:
  void take(std::vector<UniqueFd> fds) {
    const MutexLock lock(mu_);
    for (UniqueFd& fd : fds)
      waiting_.push_back(std::move(fd));
    if (!is_started_) start();
    added_.notify_one();
  }

 private:
  void start() GS_REQUIRES(mu_) {
    Result<std::thread> thread = start_thread("closing descriptors", [this] { run(); });
    if (!thread.has_value()) {
      // The descriptors stay open in waiting_ until a later call can start the thread.
      log::error("{}", thread.error().message());
      return;
    }
    thread->detach();
    is_started_ = true;
  }
  void run() {
    for (;;) {
      std::vector<UniqueFd> fds;
      {
        const MutexLock lock(mu_);
        while (waiting_.empty())
          added_.wait(mu_);
        fds = std::exchange(waiting_, {});
      }
      for (UniqueFd& fd : fds) {
        // Without lingering, close() of a socket does not wait until its bytes are sent. For other
        // files the call fails, and that is harmless.
        constexpr linger kNone{.l_onoff = 0, .l_linger = 0};
        static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &kNone, sizeof(kNone)));
        fd.reset();
      }
    }
  }

  Mutex mu_;
  CondVar added_;
  std::vector<UniqueFd> waiting_ GS_GUARDED_BY(mu_);
  bool is_started_ GS_GUARDED_BY(mu_) = false;
};

}  // namespace

void close_elsewhere(std::vector<UniqueFd> fds) {
  // Never destroyed: its thread uses it until the process has ended.
  static auto* const closer = new Closer;
  closer->take(std::move(fds));
}

}  // namespace gpushare::ipc
