// Changes by the coordinator come before what the job has registered: a person has made them since.
// They last until the next registration.
#include "csrc/client/link/registration.h"

#include <utility>

#include <fmt/format.h>

#include "csrc/wire/job_messages.h"

namespace gpushare::client {

// The texts name the number that was given and what is allowed, since they reach the person who
// wrote it. What only the coordinator can judge, such as a user's limits, is not looked at here.
Status Registration::check(const RegisterOptions& options) {
  const auto invalid = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, text);
  };
  for (const std::string* text : {&options.name, &options.group, &options.gang}) {
    if (text->size() > wire::kMaxNameBytes) {
      return invalid(fmt::format("name \"{}...\" is {} B long, at most {} are allowed",
                                 text->substr(0, 16), text->size(), wire::kMaxNameBytes));
    }
  }
  const wire::JobSettings& settings = options.settings;
  if (!(settings.weight > 0))
    return invalid(fmt::format("weight {}, must be > 0", settings.weight));
  if (settings.memory_limit < Bytes{0}) {
    return invalid(fmt::format("memory_limit {} B, must be >= 0", settings.memory_limit.value()));
  }
  if (settings.deadline < Nanos{0}) {
    return invalid(fmt::format("deadline {}, must be >= 0", to_string(settings.deadline)));
  }
  if (!(settings.share_limit >= 0 && settings.share_limit <= 1)) {
    return invalid(fmt::format("share_limit {}, must be from 0 to 1", settings.share_limit));
  }
  if (options.ranks == 0 || options.rank >= options.ranks) {
    return invalid(fmt::format("rank {} of {}", options.rank, options.ranks));
  }
  return {};
}

// What was changed for an earlier registration, or refused, says nothing of this one.
void Registration::begin(const RegisterOptions& options) {
  options_ = options;
  changes_ = {};
  refusal_.clear();
}

// A job that has been registered before keeps what it has: the refusal is of a later wish.
void Registration::refuse(const std::string& reason) {
  if (!is_wanted() || is_registered_) return;
  refusal_ = reason;
  options_.reset();
}

// The wish as it is sent, on the first connection and on each later one.
wire::Register Registration::make_message(const wire::Address& of, std::uint64_t iterations) const {
  wire::Register wish{.of = of,
                      .name = options_->name,
                      .group = options_->group,
                      .settings = options_->settings,
                      .iterations_done = iterations,
                      .fingerprint = options_->fingerprint,
                      .arbiter = options_->arbiter};
  changes_.apply_to(wish.settings);
  if (changes_.is_paused.value_or(false)) wish.paused_by = paused_by_;
  return wish;
}

void Registration::change(const wire::Changes& changes, std::uint32_t by) {
  changes_.add(changes);
  if (changes.is_paused.has_value()) paused_by_ = by;
}

// An elastic limit is none here: the coordinator alone knows whether others want what is beyond it.
Bytes Registration::hard_limit() const {
  const wire::JobSettings settings = is_wanted() ? options_->settings : wire::JobSettings{};
  if (changes_.is_elastic.value_or(settings.is_elastic)) return Bytes{};
  return changes_.memory_limit.value_or(settings.memory_limit);
}

// The page and the bell of a new registration. Earlier pages stay mapped for as long as the process
// lives, since a thread may be about to read one.
Result<wire::LeasePage*> Registration::install(std::vector<UniqueFd> fds) {
  if (fds.size() != 2) {
    return fail(StatusCode::kProtocol,
                fmt::format("{} descriptors came with it, must be 2", fds.size()));
  }
  constexpr Bytes kSize{static_cast<std::int64_t>(wire::kPageBytes)};
  Result<ipc::SharedMemory> memory = ipc::SharedMemory::attach(std::move(fds[0]), kSize);
  if (!memory.has_value()) return fail(memory.error());
  auto* const fresh = static_cast<wire::LeasePage*>(memory->data());
  if (!wire::is_valid(*fresh)) return fail(StatusCode::kProtocol, "it is none of this version");
  bell_ = OwnFile(std::move(fds[1]));
  pages_.push_back(std::move(*memory));
  return fresh;
}

void Registration::end() {
  options_.reset();
  is_registered_ = false;
  bell_.reset();
}

// The child of a fork is no job. It shares its parent's page, and must not write there.
void Registration::on_fork() {
  end();
  pages_.clear();
}

}  // namespace gpushare::client
