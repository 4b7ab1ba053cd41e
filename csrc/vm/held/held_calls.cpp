// How a system call that failed over memory on the move is made again. Each wrapper calls libc
// first. Only if that fails with EFAULT, and one of its buffers may be on the move, the thread
// sleeps 0.2 ms and calls again, until the move is over.
//
// A call may also end early: the kernel returns what it had written before it came to a page that
// was read-only. For a regular file, and for a socket with MSG_WAITALL, callers count on a full
// buffer. So the wrapper goes on behind what is there. All other calls may return less anyway.
//
// Calls into libc from this file are not led here again: replace_imports() leaves out its own
// module.
#include "csrc/vm/held/held_calls.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include "csrc/base/log.h"
#include "csrc/base/mutex.h"
#include "csrc/vm/held/held_writes.h"
#include "csrc/vm/held/imports.h"

namespace gpushare::vm {
namespace {

bool may_be_held(const iovec& part) {
  return any_may_be_held(static_cast<const std::byte*>(part.iov_base), part.iov_len);
}

// Whether the call failed because of a move. If so the thread has slept, and may try again. A
// signal ends the sleep, and with it the tries: the caller sees EINTR, as in a call that a signal
// interrupts.
bool should_call_again(std::span<const iovec> into) {
  if (errno != EFAULT || std::ranges::none_of(into, may_be_held)) return false;
  return ::nanosleep(&kBetweenTries, nullptr) == 0;
}

// Makes the call until it succeeds or fails for a reason of its own. What a call got is never lost:
// it is repeated only where it got nothing.
template <typename Call>
ssize_t call_until_done(std::span<const iovec> into, const Call& call) {
  ssize_t got = call();
  while (got < 0 && should_call_again(into))
    got = call();
  return got;
}

// Reads into one buffer by `call(buffer, size, offset)`. Where the caller counts on a full buffer
// as long as there is data, a read that a move has cut short goes on behind what it has.
template <typename Call, typename CountsOnAll>
ssize_t call_until_full(void* buffer,
                        std::size_t size,
                        const Call& call,
                        const CountsOnAll& counts_on_all) {
  auto* const bytes = static_cast<std::byte*>(buffer);
  std::size_t filled = 0;
  for (;;) {
    const iovec rest{bytes + filled, size - filled};
    const ssize_t got =
        call_until_done({&rest, 1}, [&] { return call(rest.iov_base, rest.iov_len, filled); });
    if (got <= 0) return filled > 0 ? static_cast<ssize_t>(filled) : got;
    filled += static_cast<std::size_t>(got);
    if (filled == size || !any_may_be_held(bytes + filled, 1) || !counts_on_all()) {
      return static_cast<ssize_t>(filled);
    }
  }
}

// A pipe or a terminal may end a read early at any time, and callers of those expect it.
bool is_regular_file(int file) {
  struct stat found{};
  return ::fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

// The wrappers have the parameters of the calls they stand for, in the same order.
ssize_t held_read(int file, void* buffer, std::size_t size) {
  return call_until_full(
      buffer, size, [file](void* to, std::size_t n, std::size_t) { return ::read(file, to, n); },
      [file] { return is_regular_file(file); });
}

ssize_t held_pread(int file, void* buffer, std::size_t size, off_t offset) {
  return call_until_full(
      buffer, size,
      [&](void* to, std::size_t n, std::size_t filled) {
        return ::pread(file, to, n, offset + static_cast<off_t>(filled));
      },
      [file] { return is_regular_file(file); });
}

ssize_t held_recvfrom(
    int socket, void* buffer, std::size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  return call_until_full(
      buffer, size,
      [&](void* to, std::size_t n, std::size_t) {
        return ::recvfrom(socket, to, n, flags, from, from_size);
      },
      [flags] { return (flags & MSG_WAITALL) != 0 && (flags & MSG_PEEK) == 0; });
}

ssize_t held_recv(int socket, void* buffer, std::size_t size, int flags) {
  return held_recvfrom(socket, buffer, size, flags, nullptr, nullptr);
}

std::span<const iovec> parts(const iovec* first, std::size_t count) {
  // With a null pointer or too high a count no buffer is looked at: the call itself refuses both.
  return first == nullptr || count > IOV_MAX ? std::span<const iovec>{} : std::span(first, count);
}

ssize_t held_readv(int file, const iovec* into, int count) {
  return call_until_done(parts(into, static_cast<std::size_t>(count)),
                         [&] { return ::readv(file, into, count); });
}

ssize_t held_preadv(int file, const iovec* into, int count, off_t offset) {
  return call_until_done(parts(into, static_cast<std::size_t>(count)),
                         [&] { return ::preadv(file, into, count, offset); });
}

ssize_t held_preadv2(int file, const iovec* into, int count, off_t offset, int flags) {
  return call_until_done(parts(into, static_cast<std::size_t>(count)),
                         [&] { return ::preadv2(file, into, count, offset, flags); });
}

ssize_t held_recvmsg(int socket, msghdr* message, int flags) {
  const auto into =
      message == nullptr ? std::span<const iovec>{} : parts(message->msg_iov, message->msg_iovlen);
  return call_until_done(into, [&] { return ::recvmsg(socket, message, flags); });
}

// libc reads a large request past its own buffer, by a call of its own that no slot leads to. So
// fread() itself is led here. An error of the stream that a move has caused is cleared before it
// goes on.
std::size_t held_fread(void* buffer, std::size_t size, std::size_t count, std::FILE* file) {
  if (size == 0 || count == 0) return 0;
  auto* const bytes = static_cast<std::byte*>(buffer);
  const std::size_t wanted = size * count;
  std::size_t filled = 0;
  for (;;) {
    filled += std::fread(bytes + filled, 1, wanted - filled, file);
    if (filled == wanted || std::ferror(file) == 0) break;
    const iovec rest{bytes + filled, wanted - filled};
    if (!should_call_again({&rest, 1})) break;
    std::clearerr(file);
  }
  return filled / size;
}

template <typename Function>
Import led(const char* name, Function* original, Function* replacement) {
  return {name, reinterpret_cast<void*>(original), reinterpret_cast<void*>(replacement)};
}

static_assert(sizeof(off_t) == 8, "the names with 64 are the same calls");

// A caller sees what libc would have shown: the same arguments, result and errno.
const std::array kCalls{
    led<ssize_t(int, void*, std::size_t)>("read", ::read, held_read),
    led<ssize_t(int, void*, std::size_t, off_t)>("pread", ::pread, held_pread),
    led<ssize_t(int, void*, std::size_t, off_t)>("pread64", ::pread, held_pread),
    led<ssize_t(int, const iovec*, int)>("readv", ::readv, held_readv),
    led<ssize_t(int, const iovec*, int, off_t)>("preadv", ::preadv, held_preadv),
    led<ssize_t(int, const iovec*, int, off_t)>("preadv64", ::preadv, held_preadv),
    led<ssize_t(int, const iovec*, int, off_t, int)>("preadv2", ::preadv2, held_preadv2),
    led<ssize_t(int, const iovec*, int, off_t, int)>("preadv64v2", ::preadv2, held_preadv2),
    led<ssize_t(int, void*, std::size_t, int)>("recv", ::recv, held_recv),
    led<ssize_t(int, void*, std::size_t, int, sockaddr*, socklen_t*)>(
        "recvfrom", ::recvfrom, held_recvfrom),
    led<ssize_t(int, msghdr*, int)>("recvmsg", ::recvmsg, held_recvmsg),
    led<std::size_t(void*, std::size_t, std::size_t, std::FILE*)>("fread", std::fread, held_fread),
};

Mutex g_mu;
std::uint64_t g_loads_seen GS_GUARDED_BY(g_mu) = 0;

}  // namespace

// Called before memory moves. Nearly always no module was loaded since the last time, and this is
// one comparison under a lock.
void take_over_calls() {
  const MutexLock lock(g_mu);
  const std::uint64_t loads = num_module_loads();
  if (loads == g_loads_seen) return;
  const int replaced = replace_imports(kCalls);
  // A module may be listed before its slots are filled. And a module's first call of a function, if
  // it is under way on another thread, writes libc's address into the slot again. So modules are
  // looked at once more at the next move, until a look has changed nothing.
  if (replaced == 0) g_loads_seen = loads;
  log::debug("{} calls of loaded modules wait from now on for memory that is on the move",
             replaced);
}

}  // namespace gpushare::vm
