// When SOCKET.profiles is read and written (profile_file.h): read when the coordinator begins,
// written when a job has ended and something has changed.
//
// Which problem it solves: many jobs may end one after the other, and each write is a whole file.
// So a write follows the one before after ten seconds at the earliest, and a timer does it then.
//
// What it does not do: it does not own the profiles. It asks its owner for them, since the state
// machine has them.
//
// One thread: all of it runs on the event loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/sched/job/profiles.h"

namespace gpushare::daemon {

class ProfileStore {
 public:
  using Source = std::function<const sched::Profiles&()>;

  // `source` is asked at each write, and not before load() has returned. `loop` must outlive the
  // object.
  ProfileStore(const std::string& socket, ipc::EventLoop& loop, Source source);

  // What the coordinators before this one have left.
  [[nodiscard]] sched::Profiles load();
  // Writes the profiles if they have changed; later where they were written just now.
  void save();
  // Writes them now, if they have changed.
  void write();
  // The file may have gone: profiles that there are count as changed.
  void forget_written() { written_ = 0; }

 private:
  [[nodiscard]] bool has_changed() const;

  const std::string path_;
  const Source source_;
  std::uint64_t written_ = 0;  // Profiles::num_changes() of what the file has
  std::optional<Nanos> written_at_;
  ipc::EventLoop::Timer timer_;
};

}  // namespace gpushare::daemon
