// An account: what a coordinator keeps of a job that has ended, or that it has left to the next
// coordinator. It is one line of the journal (account_journal.h). docs/accounts.md defines each
// field, and says which of them are sums of this coordinator and which are of the whole job.
//
// What it does not do: it forms no rate. Whoever reads the journal does that, so that a definition
// can change without a new line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {

// The version of a line's fields. python/gpushare/_accounts/journal.py reads this version and all
// before it.
inline constexpr int kAccountVersion = 2;

// How the coordinator saw the last of a job.
enum class JobEnd {
  kEnded,      // the process ended after it had said that its iterations were over
  kDied,       // the process ended without saying so: killed, crashed, or left in a hurry
  kLost,       // the process ended while no coordinator heard of it
  kCarriedOn,  // the coordinator ended while the process lived
};
const char* name_of(JobEnd end);

struct Account {
  // Who. The id is host_job_id() of the process.
  std::string id;
  std::uint64_t epoch = 0;
  JobId job;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::string name, group, command;
  // Where.
  std::string host, device, policy;
  // When, in ns since 1970.
  std::int64_t start_unix_ns = 0;
  std::int64_t end_unix_ns = 0;
  // How.
  JobEnd end = JobEnd::kEnded;
  std::optional<std::int32_t> wait_status;  // as of waitpid(); nothing: not known
  // Sums of this coordinator.
  Nanos held, waited, switching;
  std::uint64_t leases = 0;
  // Of the whole job, whichever coordinators it had.
  std::uint64_t iterations = 0;
  std::uint64_t optimizer_steps = 0;
  Nanos busy;
  Bytes dropped, spilled, restored;
  Bytes peak;  // persistent and ephemeral memory together; 0: not known
  // The gang of a rank, and how many ranks the gang has; "": it was no rank.
  std::string gang;
  std::uint32_t ranks = 1;
};

// A number of the process that no other process of this host has or will have, and that does not
// depend on the coordinator: 12 hexadecimal digits, of the boot, the pid and the start time.
std::string host_job_id(std::int32_t pid, std::uint64_t start_ticks);
// This machine's name, of letters, digits, '.', '_' and '-' alone: it is part of file names.
std::string host_name();
// CLOCK_REALTIME. Only people read it: nothing is decided by it.
std::int64_t unix_now_ns();

// One line of JSON, without a line break.
std::string line_of(const Account& account);
// The account of such a line. errors: kProtocol for text that is none.
Result<Account> read_account(const std::string& line);
// What the lines of one account begin with, and of no other: whatever else they say of it.
std::string beginning_of(const Account& account);

}  // namespace gpushare::daemon
