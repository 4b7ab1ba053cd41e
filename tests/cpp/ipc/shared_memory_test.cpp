#include "csrc/ipc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::ipc {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSize{4096};
constexpr int kSizeSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

SharedMemory created() {
  auto memory = SharedMemory::create("test", kSize);
  EXPECT_TRUE(memory.has_value()) << memory.error().to_string();
  return memory.has_value() ? std::move(*memory) : SharedMemory();
}

UniqueFd copy_of(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

char* text_in(const SharedMemory& memory) { return static_cast<char*>(memory.data()); }

// The refusal of a memfd with these seals and this size.
Status refusal_of(int seals, off_t size) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), size), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  const auto memory = SharedMemory::attach(std::move(fd), kSize);
  return memory.has_value() ? Status() : memory.error();
}

TEST(SharedMemory, IsZeroedAndAsLargeAsAskedFor) {
  const SharedMemory memory = created();
  ASSERT_TRUE(memory.is_valid());
  EXPECT_EQ(memory.size(), kSize);
  const char* text = text_in(memory);
  EXPECT_TRUE(std::all_of(text, text + kSize.value(), [](char byte) { return byte == 0; }));
}

TEST(SharedMemory, TwoMappingsAreOneMemory) {
  const SharedMemory memory = created();
  const auto other = SharedMemory::attach(copy_of(memory.fd()), kSize);
  ASSERT_TRUE(other.has_value()) << other.error().to_string();
  ASSERT_NE(other->data(), memory.data());
  text_in(memory)[17] = 'x';
  EXPECT_EQ(text_in(*other)[17], 'x');
}

TEST(SharedMemory, NobodyCanChangeItsSizeOrItsSeals) {
  const SharedMemory memory = created();
  EXPECT_EQ(::ftruncate(memory.fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(memory.fd(), 8192), -1);
  EXPECT_EQ(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(SharedMemory, ClosesOnExec) {
  const SharedMemory memory = created();
  EXPECT_NE(::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedMemory, AcceptsOnlySealedMemory) {
  EXPECT_TRUE(refusal_of(kSizeSeals, 4096).ok());
  EXPECT_TRUE(refusal_of(kSizeSeals, 8192).ok());
  for (const int missing : {F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SEAL}) {
    const Status status = refusal_of(kSizeSeals & ~missing, 4096);
    EXPECT_EQ(status.code(), StatusCode::kProtocol) << missing;
    EXPECT_THAT(status.message(), HasSubstr("seals"));
  }
}

TEST(SharedMemory, RefusesMemoryThatIsTooSmallOrReadOnly) {
  const Status small = refusal_of(kSizeSeals, 4095);
  EXPECT_EQ(small.code(), StatusCode::kProtocol);
  EXPECT_THAT(small.message(), HasSubstr("4095 B, needed 4096 B"));
  EXPECT_EQ(refusal_of(kSizeSeals | F_SEAL_WRITE, 4096).code(), StatusCode::kProtocol);
  const SharedMemory memory = created();
  UniqueFd read_only(
      ::open(fmt::format("/proc/self/fd/{}", memory.fd()).c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(SharedMemory::attach(std::move(read_only), kSize).error().code(),
            StatusCode::kProtocol);
}

TEST(SharedMemory, RefusesWhatIsNoMemory) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd write_end(ends[1]);
  const auto memory = SharedMemory::attach(UniqueFd(ends[0]), kSize);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code(), StatusCode::kProtocol);
  EXPECT_FALSE(SharedMemory::attach(UniqueFd(), kSize).has_value());
}

TEST(SharedMemory, MovesWithItsMapping) {
  SharedMemory first = created();
  text_in(first)[0] = '1';
  SharedMemory second(std::move(first));
  EXPECT_FALSE(first.is_valid());  // NOLINT(bugprone-use-after-move): what is left is the question
  EXPECT_EQ(text_in(second)[0], '1');
  SharedMemory third = created();
  third = std::move(second);
  EXPECT_EQ(text_in(third)[0], '1');
  SharedMemory& same = third;
  third = std::move(same);
  ASSERT_TRUE(third.is_valid());
  EXPECT_EQ(text_in(third)[0], '1');
  EXPECT_EQ(third.size(), kSize);
}

TEST(SharedMemory, LeavesNoDescriptorBehind) {
  int before = -1;
  {
    const SharedMemory memory = created();
    before = memory.fd();
  }
  EXPECT_EQ(::fcntl(before, F_GETFD), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace gpushare::ipc
