// The socket under which jobs find the coordinator: its name, who connects there, and its return
// when the name has gone.
//
// Which problem it solves: connections may come faster than they can be served, a process may run
// out of descriptors, and the socket's folder may be removed under a running coordinator, such as
// at a logout. None of these may end the coordinator or cost the jobs that it has anything.
//
//     Listener listener(options, lock, loop, {.on_connection = ..., .on_restored = ...});
//     GS_RETURN_IF_ERROR(listener.open());
//
// What it does not do: it does not look at who has connected (server_sessions.cpp), and it makes
// neither the log nor the other files beside the socket.
//
// One thread: all of it runs on the event loop's.
#pragma once

#include <cstdint>
#include <functional>

#include "csrc/base/status.h"
#include "csrc/base/token_bucket.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/options.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {

class Listener {
 public:
  struct Callbacks {
    std::function<void(UniqueFd)> on_connection;  // somebody has connected
    std::function<void()> on_restored;            // the name had gone and leads here again
  };

  // `options`, `lock` and `loop` must outlive it. `lock` is the instance lock of options.socket,
  // and is replaced where its file has gone.
  Listener(const DaemonOptions& options, UniqueFd& lock, ipc::EventLoop& loop, Callbacks callbacks);
  ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Listens under the socket's name. errors: kIo.
  Status open();
  // Makes folder, lock and socket again if the name does not lead here any more, and says so by
  // on_restored(). Tried again for ten seconds; then it is logged, and nothing has changed.
  void restore();
  // Removes the name, if it is still that of this socket, and listens no more. For good.
  void close();

  // Whether the kernel refuses descriptors that peers send (ipc::refuse_descriptors).
  [[nodiscard]] bool are_descriptors_refused() const { return are_descriptors_refused_; }

 private:
  Status watch();
  void accept();
  void accept_later(Nanos pause);
  [[nodiscard]] bool is_here() const;
  Status take_lock_again();
  void try_to_restore();

  const DaemonOptions& options_;
  UniqueFd& lock_;
  ipc::EventLoop& loop_;
  const Callbacks callbacks_;
  UniqueFd socket_;
  std::uint64_t inode_ = 0;  // of the socket's name
  bool is_closed_ = false;
  bool are_descriptors_refused_ = false;
  TokenBucket accepts_;
  Nanos restore_until_;
  ipc::EventLoop::Watch watch_;         // after socket_: must end before it
  ipc::EventLoop::Timer accept_timer_;  // while nobody is accepted
  ipc::EventLoop::Timer restore_timer_;
};

}  // namespace gpushare::daemon
