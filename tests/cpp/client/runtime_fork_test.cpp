#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "csrc/client/memory/router.h"

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

// In the order of the lock order, as binding/ does.
pid_t fork_job(JobWorld& job) {
  job.runtime->before_fork();
  job.allocator->before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    job.allocator->after_fork_in_child();
    job.runtime->after_fork_in_child();
  } else {
    job.allocator->after_fork_in_parent();
    job.runtime->after_fork_in_parent();
  }
  return child;
}

bool is_inert(JobWorld& job) {
  const Result<GateResult> entered = job.runtime->begin_iteration(seconds(20));
  if (!entered.has_value() || *entered != GateResult::kEntered) return false;
  job.end();
  job.runtime->give_up();
  job.runtime->close_lease(wire::BoundaryKind::kException);
  if (job.runtime->register_job({}).code() != StatusCode::kUnavailable) return false;
  job.runtime->unregister_job();
  const JobStats stats = job.runtime->stats();
  if (job.runtime->is_managed() || stats.is_registered || stats.job != JobId{}) return false;
  if (job.runtime->spill_and_restore().ok()) return false;
  if (job.runtime->explain(seconds(20)).empty()) return false;
  job.allocator->set_room_source(nullptr);
  job.runtime.reset();
  return true;
}

TEST(RuntimeFork, AChildIsNoJobAndItsParentStaysOne) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  const Tensor tensor(*job.allocator, mib(4), 0x19);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  coordinator.wait_for<wire::Register>();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator.grant_lease();
  job.begin();
  const pid_t child = fork_job(job);
  if (child == 0) ::_exit(is_inert(job) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The child's end closed nothing of ours.
  job.end();
  EXPECT_EQ(wire::load(coordinator.page()).state(), wire::LeaseState::kOpenGap);
  EXPECT_EQ(job.runtime->explain(seconds(20)), "job 9 holds the device");
  EXPECT_FALSE(coordinator.has<wire::Unregister>());
  EXPECT_TRUE(tensor.is_intact());
}

TEST(RuntimeFork, SpilledMemoryComesBackFirst) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  const Tensor tensor(*job.allocator, mib(4), 0x19);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  coordinator.wait_for<wire::Register>();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator.revoke(coordinator.room());
  EXPECT_EQ(job.residency->to_restore(), mib(4));
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = fork_job(job);
  if (child == 0) {
    ::alarm(30);
    ::close(gate[1]);
    char byte = 0;
    if (::read(gate[0], &byte, 1) != 0) ::_exit(2);  // end of file: the parent has spilled again
    ::_exit(tensor.is_intact() ? 0 : 1);
  }
  ::close(gate[0]);
  EXPECT_EQ(job.residency->to_restore(), Bytes{});
  coordinator.revoke(coordinator.room());
  EXPECT_EQ(job.residency->to_restore(), mib(4));
  EXPECT_TRUE(tensor.is_intact());
  ::close(gate[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Of a process of its own: in a child it must not be asked.
class ParentsRouter final : public Router {
 public:
  explicit ParentsRouter(const alloc::CachingAllocator& allocator)
      : all_{allocator.reserved_range().first, allocator.reserved_range().second} {}

  void drain() override { check(); }
  // All of it holds something, and may move.
  Result<alloc::MemoryUse> close() override {
    check();
    return alloc::MemoryUse{.movable = {all_}, .used = {all_}};
  }
  void open() override { check(); }
  Bytes live() override {
    check();
    return {};
  }

 private:
  void check() const {
    if (::getpid() != owner_) ::_exit(3);
  }
  const pid_t owner_ = ::getpid();
  const alloc::ByteSpan all_;
};

TEST(RuntimeFork, ADevicesMemoryStaysWhereItIs) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  ParentsRouter router(*job.allocator);
  job.runtime->set_router(&router);
  const Tensor tensor(*job.allocator, mib(4), 0x19);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  coordinator.wait_for<wire::Register>();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator.revoke(coordinator.room());
  EXPECT_EQ(job.residency->to_restore(), mib(4));
  const pid_t child = fork_job(job);
  if (child == 0) ::_exit(is_inert(job) ? 0 : 1);
  EXPECT_EQ(job.residency->to_restore(), mib(4));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // Before its router.
  job.allocator->set_room_source(nullptr);
  job.runtime.reset();
}

TEST(RuntimeFork, AChildOfAJobInTheGateIsLetThrough) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  coordinator.wait_for<wire::Register>();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  const pid_t child = fork_job(job);
  if (child == 0) ::_exit(is_inert(job) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(wire::load(coordinator.page()).state(), wire::LeaseState::kWanted);
}

}  // namespace
}  // namespace gpushare::client
