#include "tests/cpp/support/client_job_world.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

namespace gpushare::client {

TestFolder::TestFolder() : path_(::testing::TempDir() + "gpushare-client-XXXXXX") {
  EXPECT_NE(::mkdtemp(path_.data()), nullptr);
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Tensor::Tensor(alloc::CachingAllocator& allocator, Bytes size, unsigned char seed)
    : allocator_(allocator), size_(size), seed_(seed) {
  Result<void*> data = allocator_.allocate(size);
  EXPECT_TRUE(data.has_value()) << data.error().to_string();
  if (!data.has_value()) return;
  data_ = static_cast<unsigned char*>(*data);
  std::memset(data_, seed_, size_.to_size());
}

Tensor::Tensor(Tensor&& other) noexcept
    : allocator_(other.allocator_),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      seed_(other.seed_) {}

Tensor::~Tensor() {
  if (data_ != nullptr) allocator_.free(data_);
}

bool Tensor::is_intact() const {
  if (data_ == nullptr) return false;
  for (std::size_t i = 0; i < size_.to_size(); i += 512) {
    if (data_[i] != seed_) return false;
  }
  return data_[size_.to_size() - 1] == seed_;
}

JobWorld::JobWorld(const TestFolder& folder, ClientConfig config) {
  if (config.socket_paths.empty()) config.socket_paths = {folder.file("sock")};
  slab = std::move(*vm::make_host_slab("", gib(1)));
  allocator = std::move(
      *alloc::CachingAllocator::create(vmm, {.address_space = gib(4), .initial_room = Bytes{0}}));
  residency = std::make_unique<alloc::Residency>(*allocator, *slab, mover);
  config.configure_host_tier = [this](const std::string& where, const HostBytes& budgets) {
    EXPECT_EQ(where, "");
    slab->set_budgets(budgets);
    ++num_tier_calls;
  };
  runtime = std::make_unique<Runtime>(std::move(config), *allocator, *residency);
  allocator->set_room_source(runtime.get());
}

JobWorld::~JobWorld() {
  allocator->set_room_source(nullptr);
  runtime.reset();
}

std::future<Result<GateResult>> JobWorld::begin_elsewhere() {
  return std::async(std::launch::async, [this] {
    // Slices, as the binding makes them.
    while (true) {
      Result<GateResult> result = runtime->begin_iteration(millis(100));
      if (!result.has_value() || *result == GateResult::kEntered) return result;
    }
  });
}

void JobWorld::begin() {
  const Result<GateResult> result = runtime->begin_iteration(seconds(20));
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  ASSERT_EQ(*result, GateResult::kEntered);
}

void JobWorld::end(bool is_step) {
  runtime->end_iteration(wire::BoundaryKind::kOptimizer, is_step);
}

}  // namespace gpushare::client
