// A library as a program might load it, that reads into memory by each call there is. It is built
// twice: once with slots that are filled at the first call, once with slots that are filled at load
// and read-only from then on.
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#define API extern "C" __attribute__((visibility("default")))

namespace {

using Read = ssize_t (*)(int file, void* into, std::size_t size);

ssize_t by_fread(int file, void* into, std::size_t size) {
  std::FILE* const stream = ::fdopen(::dup(file), "rb");
  if (stream == nullptr) return -1;
  const std::size_t got = std::fread(into, 4, size / 4, stream);
  const bool has_failed = std::ferror(stream) != 0;
  std::fclose(stream);
  return has_failed ? -1 : static_cast<ssize_t>(got * 4);
}

// In two parts.
ssize_t by_recvmsg(int file, void* into, std::size_t size) {
  auto* const bytes = static_cast<char*>(into);
  iovec parts[2] = {{bytes, size / 2}, {bytes + size / 2, size - size / 2}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return ::recvmsg(file, &message, 0);
}

iovec whole(void* into, std::size_t size) { return {into, size}; }

struct Named {
  const char* name;
  Read read;
};

const Named kReads[] = {
    {"read", [](int file, void* into, std::size_t n) { return ::read(file, into, n); }},
    {"pread", [](int file, void* into, std::size_t n) { return ::pread(file, into, n, 0); }},
    {"readv",
     [](int file, void* into, std::size_t n) {
       const iovec part = whole(into, n);
       return ::readv(file, &part, 1);
     }},
    {"preadv",
     [](int file, void* into, std::size_t n) {
       const iovec part = whole(into, n);
       return ::preadv(file, &part, 1, 0);
     }},
    {"preadv2",
     [](int file, void* into, std::size_t n) {
       const iovec part = whole(into, n);
       return ::preadv2(file, &part, 1, 0, 0);
     }},
    {"recv",
     [](int file, void* into, std::size_t n) { return ::recv(file, into, n, MSG_WAITALL); }},
    {"recvfrom",
     [](int file, void* into, std::size_t n) {
       return ::recvfrom(file, into, n, 0, nullptr, nullptr);
     }},
    {"recvmsg", by_recvmsg},
    {"fread", by_fread},
};

}  // namespace

API Read reads_by(const char* name) {
  for (const Named& each : kReads) {
    if (std::strcmp(each.name, name) == 0) return each.read;
  }
  return nullptr;
}
