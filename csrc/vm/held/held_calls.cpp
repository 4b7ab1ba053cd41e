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
// signal that came meanwhile is the caller's to look at, as in a call that it has interrupted.
bool should_call_again(std::span<const iovec> into) {
  if (errno != EFAULT || std::ranges::none_of(into, may_be_held)) return false;
  return ::nanosleep(&kBetweenTries, nullptr) == 0;
}

template <typename Call>
ssize_t call_until_done(std::span<const iovec> into, const Call& call) {
  ssize_t got = call();
  while (got < 0 && should_call_again(into))
    got = call();
  return got;
}

// `call(buffer, size, offset)` reads once. Where the caller counts on a full buffer as long as
// there is data, one that ends early because of a move goes on behind what it has.
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

bool is_regular_file(int file) {
  struct stat found{};
  return ::fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

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
  // A count that the call itself will refuse.
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

// libc reads a large request past its own buffer, by a call that no slot leads to.
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

// The flow of a call through here is that of libc's own: same arguments, errno and result.
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

void take_over_calls() {
  const MutexLock lock(g_mu);
  const std::uint64_t loads = num_module_loads();
  if (loads == g_loads_seen) return;
  const int replaced = replace_imports(kCalls);
  // A module may have been listed before its slots were filled, and a first call that is under way
  // may undo a change: only a look that changes nothing was the last.
  if (replaced == 0) g_loads_seen = loads;
  log::debug("{} calls of loaded modules wait from now on for memory that is on the move",
             replaced);
}

}  // namespace gpushare::vm
