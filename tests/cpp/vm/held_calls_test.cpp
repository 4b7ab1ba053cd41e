#include "csrc/vm/held/held_calls.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/vm/held/imports.h"
#include "csrc/vm/host/host_vmm.h"

#include "tests/cpp/support/sanitizers.h"

namespace gpushare::testing {
namespace {

using vm::kChunkBytes;
using Read = ssize_t (*)(int file, void* into, std::size_t size);

constexpr std::size_t kChunk = kChunkBytes.to_size();
constexpr std::array kLibraries{GS_LATE_READING_LIBRARY, GS_BOUND_READING_LIBRARY};

std::vector<char> some_bytes(std::size_t size) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

Read load(const char* library, const char* name) {
  void* const handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  return reinterpret_cast<Read (*)(const char*)>(::dlsym(handle, "reads_by"))(name);
}

// Two backed chunks. By library and call.
class HeldCalls : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    if (kHasThreadSanitizer) GTEST_SKIP() << "page protection keeps the threads apart";
    ASSERT_TRUE(vmm_.back(base_, kChunkBytes * 2).ok());
    read_ = load(std::get<0>(GetParam()), std::get<1>(GetParam()));
    ASSERT_NE(read_, nullptr);
    // Called once before any move, so that the linker has filled a slot that is filled late.
    char byte = 0;
    static_cast<void>(read_(-1, &byte, 1));
  }

  [[nodiscard]] bool is_of_sockets() const {
    return std::string_view(std::get<1>(GetParam())).starts_with("recv");
  }

  // A descriptor from which these bytes are read.
  int source(const std::vector<char>& bytes) {
    if (!is_of_sockets()) {
      const int file = ::memfd_create("source", MFD_CLOEXEC);
      EXPECT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), std::ssize(bytes));
      return file;
    }
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    sender_ = std::thread([to = ends[1], bytes] {
      std::size_t sent = 0;
      while (sent < bytes.size())
        sent += static_cast<std::size_t>(::write(to, bytes.data() + sent, bytes.size() - sent));
      ::close(to);
    });
    return ends[0];
  }

  void TearDown() override {
    if (sender_.joinable()) sender_.join();
  }

  vm::HostVmm vmm_;
  vm::AddressRange range_ = *vmm_.reserve(kChunkBytes * 2);
  std::byte* base_ = range_.base();
  Read read_ = nullptr;
  std::thread sender_;
};

TEST_P(HeldCalls, WaitsUntilTheMoveIsOver) {
  const std::vector<char> bytes = some_bytes(8192);
  const int file = source(bytes);
  ASSERT_TRUE(vmm_.freeze(base_, kChunkBytes).ok());
  std::atomic<ssize_t> got = -2;
  std::thread reader([&] { got = read_(file, base_ + 64, bytes.size()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(got, -2);
  EXPECT_EQ(base_[64 + 1], std::byte{0});
  vmm_.thaw(base_, kChunkBytes);
  reader.join();
  EXPECT_EQ(got, std::ssize(bytes));
  EXPECT_EQ(std::memcmp(base_ + 64, bytes.data(), bytes.size()), 0);
  ::close(file);
}

// Calls that fill their buffer as long as there is data. The others of sockets never promised it.
using FillingHeldCalls = HeldCalls;

// The first half can be written, the second is on the move.
TEST_P(FillingHeldCalls, DoesNotEndInTheMiddleWhereItNeverDid) {
  const std::vector<char> bytes = some_bytes(64 << 10);
  const int file = source(bytes);
  std::byte* const into = base_ + kChunk - bytes.size() / 2;
  ASSERT_TRUE(vmm_.freeze(base_ + kChunk, kChunkBytes).ok());
  std::atomic<ssize_t> got = -2;
  std::thread reader([&] { got = read_(file, into, bytes.size()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(got, -2);
  vmm_.thaw(base_ + kChunk, kChunkBytes);
  reader.join();
  EXPECT_EQ(got, std::ssize(bytes));
  EXPECT_EQ(std::memcmp(into, bytes.data(), bytes.size()), 0);
  ::close(file);
}

TEST_P(HeldCalls, FailsForMemoryElsewhereAsEver) {
  const std::vector<char> bytes = some_bytes(8192);
  const int file = source(bytes);
  ASSERT_TRUE(vmm_.freeze(base_, kChunkBytes).ok());
  void* const nothing = ::mmap(nullptr, kChunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = 0;
  EXPECT_EQ(read_(file, nothing, bytes.size()), -1);
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(read_(-1, base_, bytes.size()), -1);
  EXPECT_EQ(errno, EBADF);
  vmm_.thaw(base_, kChunkBytes);
  ::munmap(nothing, kChunk);
  ::close(file);
}

std::string name_of(const ::testing::TestParamInfo<HeldCalls::ParamType>& each) {
  const bool is_late = std::string_view(std::get<0>(each.param)) == GS_LATE_READING_LIBRARY;
  return std::string(std::get<1>(each.param)) + (is_late ? "Late" : "Bound");
}

INSTANTIATE_TEST_SUITE_P(
    All,
    HeldCalls,
    ::testing::Combine(
        ::testing::ValuesIn(kLibraries),
        ::testing::Values(
            "read", "pread", "readv", "preadv", "preadv2", "recv", "recvfrom", "recvmsg", "fread")),
    name_of);
INSTANTIATE_TEST_SUITE_P(All,
                         FillingHeldCalls,
                         ::testing::Combine(::testing::ValuesIn(kLibraries),
                                            ::testing::Values("read", "pread", "recv", "fread")),
                         name_of);

ssize_t read_nothing(int /*file*/, void* /*into*/, std::size_t /*size*/) { return -7; }

TEST(Imports, LeavesALibrarysOwnFunctionOfThatName) {
  const Read read = load(GS_OWN_READING_LIBRARY, "pread");
  ASSERT_NE(read, nullptr);
  const vm::Import pread{"pread", reinterpret_cast<void*>(&::pread),
                         reinterpret_cast<void*>(&read_nothing)};
  const vm::Import back{"pread", pread.replacement, pread.original};
  vm::replace_imports({&pread, 1});
  char byte = 0;
  // Its own, or the C library's, as the linker decides at the first call; but not the replacement.
  EXPECT_NE(read(-1, &byte, 1), read_nothing(-1, &byte, 1));
  vm::replace_imports({&back, 1});  // in all other modules
}

// Another tool of the same kind was there first.
TEST(Imports, LeavesASlotThatHoldsSomethingElse) {
  const Read read = load(GS_BOUND_READING_LIBRARY, "pread");
  ASSERT_NE(read, nullptr);
  void* const replacement = reinterpret_cast<void*>(&read_nothing);
  const vm::Import others{"pread", replacement, replacement};
  EXPECT_EQ(vm::replace_imports({&others, 1}), 0);
  char byte = 0;
  EXPECT_EQ(read(-1, &byte, 1), -1);
}

TEST(Imports, AModuleThatWasLoadedIsNoticed) {
  const std::uint64_t before = vm::num_module_loads();
  EXPECT_EQ(vm::num_module_loads(), before);
  void* const library = ::dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  EXPECT_GT(vm::num_module_loads(), before);
  ::dlclose(library);
}

}  // namespace
}  // namespace gpushare::testing
