// A job in a process of its own, which speaks the real protocol: for tests of the daemon.
//
//     JobProcess job([&](JobSide& side) { side.attach(socket); side.want(); side.tell("wants"); ...
//     }); job.expect("wants");
//
// The body runs in a forked child; a step that fails there prints why and ends the child, and the
// test then fails at its next expect(). Every wait has an end (20 s).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "csrc/base/unique_fd.h"
#include "csrc/ipc/shared_memory.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/messages.h"

namespace gpushare::testing {

// In the child.
class JobSide {
 public:
  explicit JobSide(UniqueFd test) : test_(std::move(test)) {}

  // Signs to and from the test.
  void tell(const std::string& word);
  void wait_for(const std::string& word);

  void connect(const std::string& socket);
  void disconnect() { socket_.reset(); }
  wire::Welcome hello(Bytes resident, Term held_term, const std::string& device = "cpu");
  void register_job(const std::string& name, std::uint64_t fingerprint = 0);
  // The same, as a rank that can stop with its gang.
  void register_rank(const std::string& gang, std::uint32_t rank, std::uint32_t ranks);
  // connect, hello with nothing, register.
  void attach(const std::string& socket, const std::string& name);

  void send(const wire::JobMessage& message);
  // Reads no answer; returns when the daemon has closed the connection.
  void send_until_closed(const wire::JobMessage& message);
  template <typename Message>
  Message receive() {
    const wire::CoordinatorMessage message = receive_any();
    const auto* wanted = std::get_if<Message>(&message);
    if (wanted == nullptr) give_up("another message than expected");
    return *wanted;
  }

  wire::LeasePage& page() { return *static_cast<wire::LeasePage*>(memory_.data()); }
  // The word kIdle -> kWanted, and the coordinator told.
  void want();
  // Waits for the grant: its term.
  Term wait_granted();
  // One boundary: ends the iteration, and the lease, asked for or not.
  void close_lease();
  void kick();
  [[noreturn]] void give_up(const std::string& why);

 private:
  wire::CoordinatorMessage receive_any();
  void register_as(const wire::Register& wish);

  UniqueFd test_;
  UniqueFd socket_;
  UniqueFd event_;
  ipc::SharedMemory memory_;
  wire::Address address_;
};

// In the test.
class JobProcess {
 public:
  explicit JobProcess(const std::function<void(JobSide&)>& body);
  ~JobProcess();  // killed if it still runs, and waited for
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void tell(const std::string& word);
  // The child's next sign is `word`.
  void expect(const std::string& word);
  void kill();
  // Its exit code; 0 if its body came to its end.
  int wait();

 private:
  pid_t pid_ = -1;
  UniqueFd child_;
};

}  // namespace gpushare::testing
