// A small real coordinator for one job: socket, codec, lease page and eventfd as the daemon's, and
// no decisions of its own beyond the settings below. The test decides, and waits for what the job
// says. Every wait ends in a test failure after kPatience.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/ipc/shared_memory.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

struct FakeSettings {
  std::uint64_t epoch = 1;
  Nanos memory_wait = seconds(60);
  bool welcomes = true;               // answers Hello
  bool registers = true;              // answers Register
  bool explains = true;               // answers Explain
  bool grants_room = true;            // answers Need with Grant of what it would like
  std::string refuses_hello = {};     // instead of Welcome, if not empty
  std::string refuses_register = {};  // instead of Registered, if not empty
};

class FakeCoordinator {
 public:
  static constexpr std::chrono::seconds kPatience{20};

  // Listens at `path`.
  explicit FakeCoordinator(std::string path, FakeSettings settings = {});
  // As if killed: socket and connection close at once.
  ~FakeCoordinator();
  FakeCoordinator(const FakeCoordinator&) = delete;
  FakeCoordinator& operator=(const FakeCoordinator&) = delete;

  // The oldest message of the type that no wait has taken yet.
  template <typename Message>
  Message wait_for() {
    std::unique_lock<std::mutex> lock(mutex_);
    Message found;
    const bool is_there = changed_.wait_for(lock, kPatience, [&] { return take(found); });
    if (!is_there) ADD_FAILURE() << "the job sent no " << Message::kType;
    return found;
  }
  // Whether one has come and was not taken.
  template <typename Message>
  bool has() {
    const std::scoped_lock lock(mutex_);
    for (const wire::JobMessage& message : received_) {
      if (std::holds_alternative<Message>(message)) return true;
    }
    return false;
  }

  void send(const wire::CoordinatorMessage& message, const std::vector<int>& fds = {});
  // Raises the room by `more` and tells the job. Returns the Grant's number.
  std::uint64_t grant_room(Bytes more, std::uint64_t need_n);
  // Revoke, and the job's answer to it.
  wire::Released revoke(Bytes bytes, Bytes most_spilled = gib(1));
  // The job's room by the ledger.
  Bytes room();

  // pre: the job has registered with this coordinator (wait_for<wire::Register>() came).
  wire::LeasePage& page();
  // Waits until the word has this state.
  void wait_state(wire::LeaseState state);
  // The next term; wakes the job. `grant_n` as in the page.
  Term grant_lease(std::uint64_t grant_n = 0);
  // As the daemon does: takes the lease in the gap with Close, or sets the revoke bit.
  wire::AskResult ask();
  // Waits until the job has rung since the last call: it rings after it has changed the word.
  void wait_rung();
  // Whether it has by now.
  bool has_rung();
  void drop_connection();

 private:
  void run();
  void serve(int connection);
  void reply(const wire::CoordinatorMessage& message, const std::vector<int>& fds = {});
  void handle(const wire::JobMessage& message);
  void on_hello(const wire::Hello& hello);
  void on_register();
  template <typename Message>
  bool take(Message& found) {
    for (auto message = received_.begin(); message != received_.end(); ++message) {
      auto* wanted = std::get_if<Message>(&*message);
      if (wanted == nullptr) continue;
      found = std::move(*wanted);
      received_.erase(message);
      return true;
    }
    return false;
  }

  const std::string path_;
  const FakeSettings settings_;
  UniqueFd listener_;
  UniqueFd stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  UniqueFd connection_;
  std::deque<wire::JobMessage> received_;
  Bytes room_;
  std::uint64_t next_n_ = 1;
  Term held_;
  Term term_;
  std::deque<ipc::SharedMemory> pages_;
  UniqueFd bell_;
  std::thread thread_;
};

}  // namespace gpushare::client
