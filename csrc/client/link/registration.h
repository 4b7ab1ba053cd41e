// What the process has registered as a job, and what the coordinator made of it: its changes of the
// settings, the lease pages, and the eventfd ("bell") that wakes the coordinator.
//
//   nothing --begin--> wanted --install--> registered --end--> nothing
//   wanted --withdraw (interrupted), refuse--> nothing
//   registered --on_unmanaged--> wanted
//
// Which problem it solves: a coordinator that restarts must be told the same again, with the
// changes that a person made meanwhile (`gpushare set`). And the thread that iterates may look at
// an old page while a new one is installed, so no page is unmapped before the process forks or
// ends.
//
// What it does not do: it sends nothing and knows no lease. The page in use is FastState's; the
// owner's lock keeps calls apart.
//
// Invariants: a registered job is wanted. The bell is that of the last page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/own_file.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/client/runtime.h"
#include "csrc/ipc/shared_memory.h"
#include "csrc/wire/address.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::client {

class Registration {
 public:
  // Registered, or about to be.
  [[nodiscard]] bool is_wanted() const { return options_.has_value(); }
  [[nodiscard]] bool is_registered() const { return is_registered_; }
  // pre: is_wanted().
  [[nodiscard]] const RegisterOptions& options() const { return *options_; }

  // errors: kInvalidArgument, naming the option and what it may be.
  static Status check(const RegisterOptions& options);
  // A new registration, without any change so far. pre: none is wanted.
  void begin(const RegisterOptions& options);
  // The caller does not wait for the answer any more.
  void withdraw() { options_.reset(); }
  // The coordinator refused a message. Only one that waits for its answer is ended by that: the
  // reconnect that follows must not send it again.
  void refuse(const std::string& reason);
  // Why it was refused; empty if it was not.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  // The message for the coordinator. pre: is_wanted().
  [[nodiscard]] wire::Register make_message(const wire::Address& of,
                                            std::uint64_t iterations) const;
  // A person has changed settings of the job. `by`: the user, for a pause.
  void change(const wire::Changes& changes, std::uint32_t by);
  // The limit that this job's memory may never exceed; 0: none. An elastic limit is no such limit.
  [[nodiscard]] Bytes hard_limit() const;

  // Checks the descriptors that came with Registered, and keeps them: the page and the bell.
  // Returns the new page. errors: kProtocol: they are none.
  Result<wire::LeasePage*> install(std::vector<UniqueFd> fds);
  // The new page is in use.
  void confirm() { is_registered_ = true; }
  // No iterations follow. Pages stay mapped.
  void end();
  // The coordinator is gone for good.
  void on_unmanaged() { is_registered_ = false; }
  // Unmaps the pages, since the child has one thread. Descriptors are the child's own.
  void on_fork();

  // -1 without one.
  [[nodiscard]] int bell() const { return bell_.get(); }

 private:
  std::optional<RegisterOptions> options_;
  bool is_registered_ = false;
  wire::Changes changes_;        // of options_, by the coordinator
  std::uint32_t paused_by_ = 0;  // the user, if changes_ say that it is paused
  std::string refusal_;
  OwnFile bell_;
  std::vector<ipc::SharedMemory> pages_;  // the last is in use
};

}  // namespace gpushare::client
