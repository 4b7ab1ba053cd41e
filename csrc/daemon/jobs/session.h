// The daemon's side of one connection: its socket, and who the kernel says is at the other end.
//
// The peer is not trusted. Sending never waits: a peer that does not read until its buffer is full
// is broken, and its connection is closed. What it does not do: a job is more than its connection
// (job_table.h); a session of the command line's status belongs to no job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {

class Session {
 public:
  // `now`: boot_ticks_now() (base/process/process_stat.h).
  Session(UniqueFd socket, ipc::Credentials peer, std::uint64_t now)
      : socket_(std::move(socket)), peer_(peer), admitted_ticks_(now) {}

  // The connection, to be closed by the caller. It is of no use afterwards.
  UniqueFd take_socket() {
    rest();
    return std::move(socket_);
  }
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] const ipc::Credentials& peer() const { return peer_; }
  [[nodiscard]] std::uint64_t admitted_ticks() const { return admitted_ticks_; }
  [[nodiscard]] JobId job() const { return job_; }  // 0: none (yet)
  void set_job(JobId job) { job_ = job; }
  // "job 3 (pid 41)" or "pid 41".
  [[nodiscard]] std::string name() const;

  // Calls back while there is something to read. errors: kIo.
  Status watch(ipc::EventLoop& loop, ipc::EventLoop::Callback on_readable);
  // No longer, until it is watched anew.
  void rest() { watch_.reset(); }

  // After a failure the session is broken and every later send fails. errors: kUnavailable, kIo.
  Status send(const wire::CoordinatorMessage& message, const std::vector<int>& fds = {});
  // To be closed by its owner: nothing is sent or read any more. The first reason stays.
  void mark_broken(std::string reason);
  [[nodiscard]] bool is_broken() const { return !broken_.empty(); }
  [[nodiscard]] const std::string& broken_reason() const { return broken_; }

  // The next message of the peer. errors: kDeadlineExceeded (none now), kUnavailable (its end),
  // kProtocol (what no job may send), kIo.
  Result<wire::JobMessage> receive();
  // Whether the peer has closed, though messages of it may still be unread.
  [[nodiscard]] bool has_hung_up() const;

 private:
  UniqueFd socket_;
  ipc::Credentials peer_;
  // When the connection was accepted, in ticks since boot. A process that started later did not
  // make it.
  std::uint64_t admitted_ticks_;
  JobId job_;
  std::string broken_;
  ipc::EventLoop::Watch watch_;  // after socket_: must end before it
};

}  // namespace gpushare::daemon
