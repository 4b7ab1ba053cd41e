// The job's open requests for room, and which of the coordinator's Grants are in force.
//
// Pure bookkeeping; the owner's lock keeps calls apart, and the owner waits and wakes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/room_source.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::client {

class NeedTable {
 public:
  // Adds a request. Its number is the job's own and is never used twice. One for free room only
  // is not waited for. So it is not sent again after a reconnect, the job does not count as one
  // that waits for room, and bytes that the job gives up are not added to it.
  std::uint64_t add(const alloc::RoomRequest& request);
  // The message that sends the request. pre: `n` is in the table.
  [[nodiscard]] wire::Need message(std::uint64_t n, const wire::Address& of) const;
  // Whether it has no answer yet. false for a number that is not in the table.
  [[nodiscard]] bool is_waiting(std::uint64_t n) const;
  [[nodiscard]] bool has_waiting() const;
  // Returns the answer and takes the request out of the table. Without an answer:
  // kDeadlineExceeded.
  Status take(std::uint64_t n);

  // Answers to numbers that are not in the table are for requests given up: nothing to do.
  void on_grant(std::uint64_t grant_n, std::uint64_t need_n);
  void on_denied(std::uint64_t need_n, const std::string& reason);
  // The oldest open request; 0: none.
  [[nodiscard]] std::uint64_t oldest() const;
  // Adds `bytes`, which the job gave up while this request waits, to the request. A restore asks
  // for `away` of them. false: the request does not wait.
  bool add_given(std::uint64_t n, Bytes bytes, Bytes away);
  // Takes back from all requests what is away, since a restore asks for that itself. Returns the
  // requests that have changed, to send again.
  std::vector<wire::Need> take_back_away(const wire::Address& of);
  // Answers all requests, since no coordinator will, and room has no limit any more.
  void grant_all();

  // The number of the last Grant, or message that counts as one, that is in force. Numbers start
  // anew with each connection.
  [[nodiscard]] std::uint64_t last_grant() const { return last_grant_; }
  void on_new_connection() { last_grant_ = 0; }
  // Requests to send (again), lowest number first.
  [[nodiscard]] std::vector<wire::Need> waiting(const wire::Address& of) const;

 private:
  struct Entry {
    [[nodiscard]] bool is_waited_for() const {
      return !is_answered && request.patience == alloc::Patience::kWaits;
    }

    alloc::RoomRequest request;
    Bytes away;  // of its bytes: what left meanwhile, and a restore asks for
    bool is_answered = false;
    Status answer;
  };

  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 1;
  std::uint64_t last_grant_ = 0;
};

}  // namespace gpushare::client
