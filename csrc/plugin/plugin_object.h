// The plugin's object: what the functions in the slots do (segment_plugin.h), once they have found
// it (install.cpp).
//
// It does not know how it is found, and outlives every call that may still be under way.
//
// threads: any, but for find_slots(), write_slots() and restore_slots(): one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/plugin/import_slots.h"
#include "csrc/plugin/real_runtime.h"
#include "csrc/plugin/segment_plugin.h"

namespace gpushare::plugin {

class SegmentPlugin {
 public:
  // From now on the process's forks and its exit are known.
  SegmentPlugin(const PluginOptions& options, const RealRuntime& real);

  // kWriting: the slots are being written; kServing: all hold our functions; kFailed: they were
  // put back, and some thread may still have our functions' addresses.
  enum class State : std::uint8_t { kWriting, kServing, kFailed };

  // Finds the slots, and changes nothing.
  Status find_slots();
  // Serves from now on, or has failed.
  Status write_slots();
  Status restore_slots() { return slots_.restore(); }
  [[nodiscard]] bool is_intact() const { return slots_.are_intact(); }
  // acquire; pairs with the release in write_slots().
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }

  CudaError allocate(void** out, std::size_t size);
  CudaError free(void* address);
  CudaError mem_get_info(std::size_t* free, std::size_t* total);
  CudaError enable_peer_access(int peer, unsigned flags);

  [[nodiscard]] PluginCounts counts() const;

 private:
  // Whether every call goes to the real function. A store may be missing then. While the slots are
  // being written it is too: if a write failed, a segment of the store could not come back to it.
  [[nodiscard]] bool is_bypassed() const;
  void say_not_shared(int device);
  CudaError make_context();
  CudaError take(void** out, std::size_t size);
  void note_refusal(const Status& reason);
  CudaError synchronize();

  const PluginOptions options_;
  const RealRuntime real_;
  const std::uint64_t number_;
  ImportSlots slots_;
  std::atomic<State> state_{State::kWriting};

  // All of these are relaxed: they are counts, and one that is seen late costs a line of the log at
  // most.
  std::atomic<std::int64_t> taken_{0};
  std::atomic<std::int64_t> given_back_{0};
  std::atomic<std::int64_t> forwarded_frees_{0};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::uint64_t> said_devices_{0};  // one bit a device
};

}  // namespace gpushare::plugin
