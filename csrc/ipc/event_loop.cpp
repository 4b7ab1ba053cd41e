// The event loop on asio: an io_context that one thread runs.
//
// A Watch or Timer may be destroyed inside its own callback. So each keeps its state in a
// shared_ptr, and the callback that asio holds shares that state. After end() a callback that asio
// still has queued finds the state ended and does nothing. Nothing here takes a lock: all calls but
// post() and stop() come on the loop's thread.
//
// What may go wrong: a wait for a descriptor fails, though watch() has accepted it. Whoever watches
// it counts on being called, so the watch is made anew every 100 ms until it can wait again.
#include "csrc/ipc/event_loop.h"

#include <sys/stat.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <asio.hpp>
#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::ipc {
namespace {

using TimePoint = asio::steady_timer::time_point;

// libstdc++'s steady_clock is CLOCK_MONOTONIC, as monotonic_now() is.
TimePoint to_time_point(Nanos when) { return TimePoint(std::chrono::nanoseconds(when.value())); }

// The pause after a failed wait.
constexpr Nanos kTryAgain = millis(100);

}  // namespace

class EventLoop::Impl {
 public:
  asio::io_context context{1};  // one thread: asio may leave out its own wake-ups
  std::optional<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  // asio reports one signal for each wait, so the wait is begun again after each.
  void wait_for_signal() {
    signals->async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;  // the loop is being destroyed
      on_signal(signal);
      wait_for_signal();
    });
  }
};

// ---- Watch

struct EventLoop::Watch::State : std::enable_shared_from_this<EventLoop::Watch::State> {
  State(asio::io_context& context, int number, Callback callback)
      : fd(number), descriptor(context), on_readable(std::move(callback)) {}

  // Waits once for the descriptor to be readable, calls back, and waits again. Each wait arms epoll
  // anew, so a descriptor that is still readable is reported again in the next turn of the loop.
  // The callback may have ended the watch, so is_live is checked again after it.
  void arm() {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const asio::error_code& error) {
                            if (!self->is_live) return;
                            if (error) return self->try_again(error);
                            self->retry.reset();
                            self->on_readable();
                            if (self->is_live) self->arm();
                          });
  }

  // Gives the descriptor to epoll anew, after a pause. The first failure of a row is logged.
  void try_again(const asio::error_code& error) {
    if (!retry) {
      log::error("watch descriptor {}: {}; trying again every {}", fd, error.message(),
                 to_string(kTryAgain));
      retry.emplace(descriptor.get_executor());
    }
    retry->expires_after(std::chrono::nanoseconds(kTryAgain.value()));
    retry->async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (cancelled || !self->is_live) return;
      asio::error_code refused;
      if (self->descriptor.is_open()) self->descriptor.release();
      self->descriptor.assign(self->fd, refused);
      if (refused) return self->try_again(refused);
      self->arm();
    });
  }

  void end() {
    is_live = false;
    retry.reset();
    // Takes the descriptor out of epoll and leaves it open: it belongs to the caller.
    if (descriptor.is_open()) descriptor.release();
  }

  const int fd;
  asio::posix::stream_descriptor descriptor;
  std::optional<asio::steady_timer> retry;  // while the last wait has failed
  Callback on_readable;
  bool is_live = true;
};

EventLoop::Watch::Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}
EventLoop::Watch::~Watch() { reset(); }
EventLoop::Watch::Watch(Watch&& other) noexcept : state_(std::move(other.state_)) {}
EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
  }
  return *this;
}
void EventLoop::Watch::reset() {
  if (const auto state = std::exchange(state_, nullptr)) state->end();
}

Result<EventLoop::Watch> EventLoop::watch(int fd, Callback on_readable) {
  // epoll refuses plain files and folders. asio would accept them and fail only at the first wait,
  // when there is nobody left to tell.
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail(errno_status(fmt::format("watch descriptor {}", fd)));
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
    return fail(StatusCode::kIo, fmt::format("watch descriptor {}: a file or folder", fd));
  }
  auto state = std::make_shared<Watch::State>(impl_->context, fd, std::move(on_readable));
  asio::error_code error;
  state->descriptor.assign(fd, error);
  if (error) {
    return fail(StatusCode::kIo, fmt::format("watch descriptor {}: {}", fd, error.message()));
  }
  state->arm();
  return Watch(std::move(state));
}

// ---- Timer

struct EventLoop::Timer::State : std::enable_shared_from_this<EventLoop::Timer::State> {
  State(asio::io_context& context, Callback callback)
      : timer(context), on_due(std::move(callback)) {}

  // Sets the time without a system call where it can. Two times are kept: `wanted`, which the
  // caller named, and `armed`, for which asio's timer is set.
  void set_at(Nanos when) {
    wanted = when;
    // A later time waits for the alarm that is already set. That alarm finds that it is early, and
    // on_alarm() sets the next one.
    if (armed && *armed <= when) return;
    arm(when);
  }

  void arm(Nanos when) {
    armed = when;
    timer.expires_at(to_time_point(when));  // ends the wait before with an error
    timer.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->on_alarm();
    });
  }

  void on_alarm() {
    armed.reset();
    if (!wanted) return;
    if (monotonic_now() < *wanted) {
      arm(*wanted);
      return;
    }
    wanted.reset();
    on_due();
  }

  void end() {
    wanted.reset();
    armed.reset();
    timer.cancel();
  }

  asio::steady_timer timer;
  Callback on_due;
  std::optional<Nanos> wanted;  // when the caller wants to be called
  std::optional<Nanos> armed;   // when the alarm rings; <= wanted
};

EventLoop::Timer::Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
EventLoop::Timer::~Timer() {
  if (state_) state_->end();
}
EventLoop::Timer::Timer(Timer&& other) noexcept : state_(std::move(other.state_)) {}
EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    if (state_) state_->end();
    state_ = std::move(other.state_);
  }
  return *this;
}
void EventLoop::Timer::set_at(Nanos when) { state_->set_at(when); }
// The alarm stays set and finds nothing wanted: cancelling costs no system call.
void EventLoop::Timer::cancel() { state_->wanted.reset(); }

EventLoop::Timer EventLoop::make_timer(Callback on_due) {
  return Timer(std::make_shared<Timer::State>(impl_->context, std::move(on_due)));
}

// ---- the loop

EventLoop::EventLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventLoop::~EventLoop() = default;

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  try {
    return std::unique_ptr<EventLoop>(new EventLoop(std::make_unique<Impl>()));
  } catch (const std::exception& error) {  // asio's constructors have no other way to fail
    return fail(StatusCode::kIo, fmt::format("create the event loop: {}", error.what()));
  }
}

Status EventLoop::watch_signals(const std::vector<int>& signals,
                                std::function<void(int)> on_signal) {
  impl_->signals.emplace(impl_->context);
  impl_->on_signal = std::move(on_signal);
  for (const int signal : signals) {
    asio::error_code error;
    impl_->signals->add(signal, error);
    if (error) {
      return {StatusCode::kIo, fmt::format("watch signal {}: {}", signal, error.message())};
    }
  }
  impl_->wait_for_signal();
  return {};
}

void EventLoop::post(Callback task) { asio::post(impl_->context, std::move(task)); }

// The work guard keeps run() from returning while nothing is watched.
void EventLoop::run() {
  const auto work = asio::make_work_guard(impl_->context);
  impl_->context.run();
  impl_->context.restart();  // here, so that a stop() that came before run() is not lost
}

void EventLoop::stop() { impl_->context.stop(); }

}  // namespace gpushare::ipc
