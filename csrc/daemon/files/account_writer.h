// Writes accounts on a thread of its own, so that the event loop never waits for a disk.
//
// Which problem it solves: a disk may be full, slow, or gone, and jobs must not notice. An account
// is handed over in memory. The thread writes it, and tries again each second after an error. At
// most kMost accounts wait; further ones are dropped, and the log says so once.
//
// Accounts that wait are lost when the process ends and the disk takes nothing for kPatience. When
// it is killed, they stand in the state file (state_file.h), and the next coordinator puts them.
//
// The thread owns the journal. It may outlive the object, if a disk hangs: all it uses is its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/account.h"
#include "csrc/daemon/files/account_journal.h"

namespace gpushare::daemon {

class AccountWriter {
 public:
  // How many accounts wait for the disk at most: about a megabyte of memory.
  static constexpr std::size_t kMost = 1024;
  // How long the end of the process waits for the disk: not a whole number of tries, so that none
  // is at work as a rule when the thread is left.
  static constexpr Nanos kPatience = millis(2500);

  // Without a thread (the log says so) nothing is written.
  explicit AccountWriter(AccountPlace place);
  // Waits until all is written, but no longer than kPatience.
  ~AccountWriter();
  AccountWriter(const AccountWriter&) = delete;
  AccountWriter& operator=(const AccountWriter&) = delete;

  // `process`: a pidfd of the job, which says how it ended; may be invalid. Never waits.
  void put(Account account, UniqueFd process);
  // Of a job of the coordinator before, which may have written it already: then nothing is written.
  void put_left_over(Account account);
  // Those that are not written yet, as lines with the pids of their processes. Never waits.
  [[nodiscard]] std::vector<std::pair<std::int32_t, std::string>> waiting() const;

 private:
  struct Shared;
  void add(Account account, UniqueFd process, bool is_left_over);
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace gpushare::daemon
