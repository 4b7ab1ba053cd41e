// A job's tie to its coordinator: whether there is one, the connection, who the job is to it, and
// what its Welcome has said.
//
//   kDetached --start_attaching--> kAttaching --adopt--> kAttached --lose--> kLost
//   kAttaching --stop_attaching (Ctrl-C)--> kDetached
//   kLost --adopt--> kAttached                     (the next coordinator, or the same one again)
//   kAttaching, kAttached, kLost --go_unmanaged--> kUnmanaged                      (for good)
//   any --on_fork--> kForked                                     (in the child, for good)
//
// Which problem it solves: a connection that ends at once may end again, and a coordinator must not
// be asked in a busy loop. So connections that were of no use are counted, the pause before the
// next one grows, and after twelve in a row the job gives up.
//
// What it does not do: it finds no coordinator and waits for nothing. The owner's lock keeps calls
// apart; no call blocks.
//
// Invariants: the connection is open in kAttached alone. A reason is given in kUnmanaged alone.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/units.h"
#include "csrc/client/link/connection.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

class CoordinatorLink {
 public:
  enum class State : std::uint8_t {
    kDetached,   // nothing was tried yet
    kAttaching,  // one thread is trying
    kAttached,
    kLost,       // the coordinator is gone; the client thread looks for one
    kUnmanaged,  // none can be had
    kForked,     // a child: never a job
  };

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool is_attached() const { return state_ == State::kAttached; }
  // Whether the job has a coordinator, or looks for the next one.
  [[nodiscard]] bool is_managed() const { return is_attached() || state_ == State::kLost; }
  [[nodiscard]] bool is_unmanaged() const { return state_ == State::kUnmanaged; }
  [[nodiscard]] bool is_forked() const { return state_ == State::kForked; }
  // Empty unless unmanaged.
  [[nodiscard]] const std::string& unmanaged_reason() const { return unmanaged_reason_; }

  void start_attaching() { state_ = State::kAttaching; }
  void stop_attaching() { state_ = State::kDetached; }
  // Takes over the connection on which `welcome` came.
  void adopt(Connection connection, const wire::Welcome& welcome, Nanos now);
  // The connection has ended. `is_of_service`: the coordinator was a service's, which this job
  // cannot start. pre: attached.
  void lose(bool is_of_service, Nanos now);
  void go_unmanaged(const std::string& reason);
  // Closing takes only the child's own descriptor away.
  void on_fork();

  // Sends a message, or keeps it if the socket is full. false: there is no connection, or it is
  // dead now. Whoever polls it then sees its end.
  bool send(const wire::JobMessage& message);
  [[nodiscard]] Connection& connection() { return connection_; }

  // One more connection was of no use: it ended before it was answered.
  void note_useless() { ++num_useless_; }
  // Whether so many connections, one after the other, were of no use that the job gives up.
  [[nodiscard]] bool has_given_up() const;
  // How long to wait before the next connection. `first`: after the first few of no use.
  [[nodiscard]] Nanos pause_before_next(Nanos first) const;
  // How long a coordinator is only looked for before one is started.
  [[nodiscard]] Nanos patience() const;

  // How messages name this job. The number is 0 before the first Welcome.
  [[nodiscard]] const wire::Address& address() const { return address_; }
  [[nodiscard]] JobId job() const { return address_.job; }
  void join_gang(const std::string& gang, std::uint32_t rank, std::uint32_t ranks);
  // What the last Welcome said.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] Bytes capacity() const { return capacity_; }
  [[nodiscard]] Nanos memory_wait() const { return memory_wait_; }
  [[nodiscard]] std::uint64_t num_reconnects() const { return num_reconnects_; }

  // The answer to an Explain. Whoever asked waits until the number has changed.
  void on_explained(std::string text);
  [[nodiscard]] std::uint64_t num_explained() const { return num_explained_; }
  [[nodiscard]] const std::string& explanation() const { return explanation_; }

 private:
  State state_ = State::kDetached;
  std::string unmanaged_reason_;
  Connection connection_;
  wire::Address address_;
  std::uint64_t epoch_ = 0;
  Bytes capacity_;  // of the device, for all jobs
  Nanos memory_wait_;
  Nanos connected_at_;
  int num_useless_ = 0;         // in a row
  bool is_of_service_ = false;  // the coordinator that was lost
  std::uint64_t num_reconnects_ = 0;
  std::uint64_t num_explained_ = 0;
  std::string explanation_;
};

}  // namespace gpushare::client
