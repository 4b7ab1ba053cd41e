// The journal of accounts: files of one line for each job that has ended, beside those of other
// coordinators in one folder.
//
// Which problem it solves: accounts outlive the coordinator, whatever ends it, and their files do
// not grow without bound. A line is written by one write() with O_APPEND, so a process that is
// killed leaves a whole line or none, and two coordinators can share a file. A line that a full
// disk has cut off is followed by a line break before the next one; readers leave it out.
//
// A file is called DEVICE@HOST.NUMBER.jsonl. When it has an eighth of the budget the next number
// begins, and the oldest files go while all of this device and host together exceed the budget.
//
// What it does not do: it waits for the disk, so the event loop must not call it
// (account_writer.h). It does not sync each line: sync() does, after many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/account.h"

namespace gpushare::daemon {

struct AccountPlace {
  std::string folder;  // is made, with the folders above it
  std::string device;
  std::string host;
  Bytes budget = mib(64);
  // Of the socket: whoever may use the coordinator may read, and nobody else may write.
  unsigned socket_mode = 0600;
  std::optional<std::uint32_t> socket_group;
};

class AccountJournal {
 public:
  explicit AccountJournal(AccountPlace place) : place_(std::move(place)) {}

  // Appends the line, after it has removed what the budget leaves no room for. errors: kIo (a full
  // disk among others), kFailedPrecondition for a folder or a file that is not ours. After an error
  // the line is not there as a whole, and may be appended again.
  Status append(const std::string& line);
  // Whether one of the two newest files had the account's line when this was first asked: what a
  // killed coordinator wrote last is there. errors: kIo, and as append().
  Result<bool> had(const Account& account);
  // What was appended survives a crash of the machine afterwards. errors: kIo.
  Status sync();

  [[nodiscard]] const std::string& folder() const { return place_.folder; }

 private:
  [[nodiscard]] std::string path_of(std::uint64_t number) const;
  // Removes the oldest files until these sizes, by number, keep to the budget.
  void make_room(std::map<std::uint64_t, Bytes>& files) const;
  Status open(const std::string& path);
  Status write_line(const std::string& line, const std::string& path);

  const AccountPlace place_;
  UniqueFd file_;  // the one that was appended to last
  std::optional<std::set<std::string>>
      beginnings_;  // of lines (beginning_of()), as had() found them
};

}  // namespace gpushare::daemon
