// The coordinator's process at work: accepts connections, turns what happens to sockets, pages and
// processes into messages for the coordinator, and ends when nobody needs it.
//
// One thread: all of it runs on the event loop's. What is decided is csrc/sched's business, how it
// is carried out conductor.h's.
//
// The end, in an order in which no client can reach a dying daemon unnoticed: the socket's name
// goes first (a new client finds nobody and starts a new daemon, which waits for the lock), then
// the listener and all connections (who had connected already reads their end), then the state
// file; the lock goes with the process.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/daemon/config/options.h"
#include "csrc/ipc/event_loop.h"

namespace gpushare::daemon {

class Server {
 public:
  // Reads the state file a crashed daemon may have left, and listens. `lock` is the instance lock
  // of options.socket, and is replaced where its file has gone. errors: kIo, kInvalidArgument.
  // `lock` and `loop` must outlive it.
  static Result<std::unique_ptr<Server>> create(const DaemonOptions& options,
                                                UniqueFd& lock,
                                                ipc::EventLoop& loop);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Stops serving and stops the loop. Jobs that live go on and look for a new coordinator; so the
  // state file is removed only if there is none.
  void shut_down(const char* reason);
  // Makes the socket again, with the lock and the files beside it, if its name does not lead here
  // any more (its folder was removed). Jobs that are here notice nothing.
  void restore_socket();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::daemon
