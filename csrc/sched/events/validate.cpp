// Refuses bad messages, so that no code after this file has to doubt one.
//
// A job is not trusted: its messages may be wrong, and its page may lie. So a message is looked at
// in three stages. First, whether this kind of message may come from a job at all. Then whether the
// sender is known, connected, and names itself. Last, whether the message is possible in the job's
// present state: a Released answers a Revoke that was sent, a slot that is returned was the job's,
// sizes are within what sums can hold.
//
// The checks only read. They are by number, so a message that comes late because two messages
// crossed is not refused here; the handler ignores it.
#include "csrc/sched/events/validate.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/job/ranges.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

constexpr Bytes kMostPieceBytes = gib(1);
constexpr std::size_t kMaxNeedsOfOneJob = 64;
// The lease word has 60 bits for it.
constexpr std::uint64_t kMaxTerm = std::uint64_t{1} << 56;

// Any violation ends the sender's connection, with this text as the reason.
Status violation(std::string reason) { return {StatusCode::kProtocol, std::move(reason)}; }

Status check_size(const char* what, Bytes size) {
  if (size >= Bytes{0} && size <= kMaxBytes) return {};
  return violation(fmt::format("{} of {} B", what, size.value()));
}

// Names go to terminals.
Status check_name(const char* what, std::string_view name) {
  if (name.size() > wire::kMaxNameBytes) {
    return violation(fmt::format("a {} of {} bytes", what, name.size()));
  }
  const bool is_printable = std::none_of(name.begin(), name.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7f;
  });
  return is_printable ? Status{} : violation(fmt::format("a {} with control characters", what));
}

// The device's name is checked for its letters before it is compared, since it is put into the text
// of the refusal.
Status check_address(const Table& table, const wire::Address& of) {
  GS_RETURN_IF_ERROR(check_name("device", of.device));
  if (of.device != table.device.name) {
    return violation(fmt::format("no device '{:.64}' here", of.device));
  }
  if (of.ranks == 0 || of.rank >= of.ranks) {
    return violation(fmt::format("rank {} of {}", of.rank, of.ranks));
  }
  return check_name("gang", of.gang);
}

// A message from a socket names its sender. The socket says who it is, so the two must agree.
Status check_sender(const Table& table, const Job& job, const wire::Address& of) {
  GS_RETURN_IF_ERROR(check_address(table, of));
  if (of.job != job.id) {
    return violation(fmt::format("job {} speaks as job {}", job.id.value, of.job.value));
  }
  if (of.device != job.who.of.device) {
    return violation(
        fmt::format("job {} is on {}, not {}", job.id.value, job.who.of.device, of.device));
  }
  return {};
}

// A Hello comes before anything is known of the job, so all its numbers are looked at. A peer of
// the version before is understood; an older or a newer one is told what to do.
Status check_hello(const Table& table, JobId from, const wire::Hello& hello) {
  if (hello.protocol > wire::kProtocolVersion || hello.protocol + 1 < wire::kProtocolVersion) {
    return violation(
        fmt::format("protocol {}, this is {}: restart with one version of gpushare on both sides",
                    hello.protocol, wire::kProtocolVersion));
  }
  GS_RETURN_IF_ERROR(check_address(table, hello.of));
  GS_RETURN_IF_ERROR(check_name("program", hello.program));
  GS_RETURN_IF_ERROR(check_size("resident", hello.resident));
  GS_RETURN_IF_ERROR(check_size("spilled", hello.spilled));
  GS_RETURN_IF_ERROR(check_size("spilled to the file", hello.spilled_file));
  GS_RETURN_IF_ERROR(check_size("the device", hello.device_total));
  if (hello.device_piece < wire::kHostPieceBytes || hello.device_piece > kMostPieceBytes) {
    return violation(fmt::format("memory in pieces of {} B", hello.device_piece.value()));
  }
  if (hello.device_free < Bytes{0} || hello.device_free > hello.device_total) {
    return violation(fmt::format("{} B free of a device of {}", hello.device_free.value(),
                                 to_string(hello.device_total)));
  }
  if (from == JobId{0}) return violation("job 0 is no job");
  if (hello.of.job != JobId{0} && hello.of.job != from) {
    return violation(fmt::format("job {} speaks as job {}", from.value, hello.of.job.value));
  }
  if (hello.held_term.value > kMaxTerm) {
    return violation(fmt::format("term {}", hello.held_term.value));
  }
  if (hello.pid <= 0) return violation(fmt::format("pid {}", hello.pid));
  if (const Job* const before = table.find(from)) {
    const bool is_same = before->who.pid == hello.pid && before->who.uid == hello.uid;
    if (before->is_connected() || !is_same) {
      return violation(fmt::format("job {} said Hello before", from.value));
    }
  }
  const JobId other = value_or(table.jobs.kept().by_pid, hello.pid, from);
  if (other != from) {
    return violation(fmt::format("pid {} is job {} already", hello.pid, other.value));
  }
  return {};
}

// A holder keeps its gang: its lease may be one of several that are held together.
Status check_register(const Table& table, const Job& job, const wire::Register& wish) {
  if (job.is_registered()) return violation(fmt::format("job {} is registered", job.id.value));
  const bool is_holder = table.device.lane_held_by(job.id) != nullptr;
  if (is_holder && wish.of.gang != job.who.of.gang) {
    return violation(fmt::format("gang '{}', and it holds a lease as one of '{}'", wish.of.gang,
                                 job.who.of.gang));
  }
  GS_RETURN_IF_ERROR(check_name("name", wish.name));
  GS_RETURN_IF_ERROR(check_name("group", wish.group));
  const Status ranges = check_ranges(wish.settings);
  return ranges.ok() ? Status{} : violation(ranges.message());
}

// Requests have no limit of their own, so one job cannot have so many that a step takes long.
Status check_need(const Table& table, const Job& job, const wire::Need& need) {
  GS_RETURN_IF_ERROR(check_size("need", need.bytes));
  GS_RETURN_IF_ERROR(check_size("need", need.like));
  GS_RETURN_IF_ERROR(check_size("room", need.room.value_or(Bytes{0})));
  std::size_t num_waiting = 0;
  for (const WaitingNeed& other : table.device.needs) {
    if (other.job != job.id) continue;
    if (other.n == need.n && need.only_free) {
      return violation(fmt::format("need {} is waiting already", need.n));
    }
    if (other.n != need.n) ++num_waiting;
  }
  if (num_waiting >= kMaxNeedsOfOneJob) {
    return violation(fmt::format("more than {} needs at once", kMaxNeedsOfOneJob));
  }
  return {};
}

// A job can release only bytes that it holds. A late answer, to a Revoke from before the connection
// was lost, is let through, and the handler ignores it.
Status check_released(const Table& table, const Job& job, const wire::Released& released) {
  GS_RETURN_IF_ERROR(check_size("released", released.bytes));
  GS_RETURN_IF_ERROR(check_size("dropped", released.dropped));
  GS_RETURN_IF_ERROR(check_size("spilled", released.spilled));
  GS_RETURN_IF_ERROR(check_size("spilled to the file", released.spilled_file));
  GS_RETURN_IF_ERROR(check_size("spilled, used late", released.spilled_late));
  GS_RETURN_IF_ERROR(check_size("unplaced", released.unplaced));
  if (released.spilled_late > released.spilled) {
    return violation(fmt::format("spilled {}, {} of it used late", to_string(released.spilled),
                                 to_string(released.spilled_late)));
  }
  if (released.n > job.room.last_n) {
    return violation(
        fmt::format("released {}, the last revoke is {}", released.n, job.room.last_n));
  }
  const bool is_answer = job.room.revoke.has_value() && job.room.revoke->n == released.n;
  const Bytes room = table.device.ledger.room(job.id);
  // Parts add up.
  if (is_answer && job.room.revoke->stored_before.total() + released.spilled > kMaxBytes) {
    return violation(fmt::format("spilled {} more, it has {} in the host tier",
                                 to_string(released.spilled),
                                 to_string(job.room.revoke->stored_before.total())));
  }
  if (is_answer && released.bytes > room) {
    return violation(
        fmt::format("released {}, its room is {}", to_string(released.bytes), to_string(room)));
  }
  return {};
}

Status check_is_registered(const Job& job) {
  if (job.is_registered()) return {};
  return violation(fmt::format("job {} is not registered", job.id.value));
}

// Sorts a copy, so that a long list costs no quadratic time.
bool has_twice(std::vector<std::uint32_t> slots) {
  std::sort(slots.begin(), slots.end());
  return std::adjacent_find(slots.begin(), slots.end()) != slots.end();
}

// Slots are numbers that a job says, so each must be one that it may use: in its pool if it keeps
// it now, or its own if it returns it.
Status check_lane_changed(const Table& table, const Job& job, const wire::LaneChanged& changed) {
  if (!table.options.lanes) return violation("a change of the lane, and lanes are off");
  GS_RETURN_IF_ERROR(check_is_registered(job));
  if (changed.n != job.room.lane_heard + 1) {
    return violation(fmt::format("change {} of the lane after {}", changed.n, job.room.lane_heard));
  }
  GS_RETURN_IF_ERROR(check_size("given", changed.given));
  const Bytes room = table.device.ledger.room(job.id);
  if (changed.given > room) {
    return violation(
        fmt::format("gave {}, its room is {}", to_string(changed.given), to_string(room)));
  }
  if (has_twice(changed.donated) || has_twice(changed.returned)) return violation("a slot twice");
  const LanePool* const pool = find_in(table.device.lane_of(job).pools, job.who.uid);
  for (const std::uint32_t slot : changed.donated) {
    if (pool == nullptr || !pool->has_slot(job.id, slot)) {
      return violation(fmt::format("slot {} is not in the pool", slot));
    }
  }
  for (const std::uint32_t slot : changed.returned) {
    const auto& donated = changed.donated;
    const bool is_new = std::find(donated.begin(), donated.end(), slot) != donated.end();
    const bool is_kept = pool != nullptr && pool->has_donated(job.id, slot);
    if (!is_new && !is_kept) {
      return violation(fmt::format("slot {} is not its own", slot));
    }
  }
  return {};
}

// One check_state() for each kind of message that may be wrong in the job's present state alone.
Status check_state(const Table& table, const Job& job, const wire::Register& wish) {
  return check_register(table, job, wish);
}
Status check_state(const Table& table, const Job& job, const wire::Need& need) {
  return check_need(table, job, need);
}
Status check_state(const Table& table, const Job& job, const wire::Released& released) {
  return check_released(table, job, released);
}
Status check_state(const Table& table, const Job& job, const wire::LaneChanged& changed) {
  return check_lane_changed(table, job, changed);
}
Status check_state(const Table& /*table*/, const Job& job, const wire::Consumed& consumed) {
  if (consumed.n <= job.room.last_n) return {};
  return violation(fmt::format("consumed {}", consumed.n));
}
Status check_state(const Table& /*table*/, const Job& job, const wire::Unregister& /*m*/) {
  return check_is_registered(job);
}
Status check_state(const Table& /*table*/, const Job& job, const wire::Wanted& /*m*/) {
  return check_is_registered(job);
}
template <typename Other>
Status check_state(const Table& /*table*/, const Job& /*job*/, const Other& /*m*/) {
  return {};
}

template <typename M, typename... Kinds>
inline constexpr bool kIsOneOf = (std::is_same_v<M, Kinds> || ...);

// The daemon says all others by itself, of a job that it knows.
template <typename M>
inline constexpr bool kIsFromSocket = kIsOneOf<M,
                                               wire::Register,
                                               wire::Unregister,
                                               wire::Need,
                                               wire::Released,
                                               wire::Consumed,
                                               wire::LaneChanged,
                                               wire::Explain>;
template <typename M>
inline constexpr bool kIsForDaemon =
    kIsOneOf<M, wire::StatusRequest, wire::Stop, wire::Set, wire::SetPolicy, wire::Place>;

}  // namespace

// A Hello is looked at alone: nothing is known of its sender. All others need a job that has said
// Hello; those that came over a socket also need a connection and the sender's own address.
Status validate(const Table& table, JobId from, const wire::JobMessage& message) {
  return std::visit(
      [&](const auto& m) -> Status {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, wire::Hello>) {
          return check_hello(table, from, m);
        } else if constexpr (kIsForDaemon<M>) {
          return violation(fmt::format("{} is no message of a job", M::kType));
        } else {
          const Job* job = table.find(from);
          if (job == nullptr) return violation(fmt::format("{} before hello", M::kType));
          if constexpr (kIsFromSocket<M>) {
            if (!job->is_connected()) return violation(fmt::format("{} before hello", M::kType));
            GS_RETURN_IF_ERROR(check_sender(table, *job, m.of));
          }
          return check_state(table, *job, m);
        }
      },
      message);
}

}  // namespace gpushare::sched
