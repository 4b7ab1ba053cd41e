// Puts the plugin in and takes it out: the one object, and the functions in the slots that find it.
//
// An installation goes in this order. The runtime and the slots are found, and nothing has changed
// until then. The object is published. The slots are written, and last the object serves. A slot
// that calls us too early would find no object; a call between the first slot and the last goes to
// the real functions.
//
// What may go wrong: a slot cannot be written. Then all are put back, and the object stays, since a
// thread may have read our address from a slot in between. What that thread calls goes to the real
// functions.
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/status.h"
#include "csrc/plugin/plugin_object.h"
#include "csrc/plugin/real_runtime.h"
#include "csrc/plugin/segment_plugin.h"

namespace gpushare::plugin {
namespace {

// The functions in the slots have no argument of ours and find their state here. The pointer is set
// before the first slot is replaced. The object is never destroyed while a slot may lead to it:
// torch frees segments while static objects are destroyed. release; pairs with plugin()'s acquire.
std::atomic<SegmentPlugin*> g_plugin{nullptr};

SegmentPlugin* plugin() { return g_plugin.load(std::memory_order_acquire); }

// The plugin that has the slots; null: none is installed.
SegmentPlugin* serving_plugin() {
  SegmentPlugin* const found = plugin();
  return found != nullptr && found->state() == SegmentPlugin::State::kServing ? found : nullptr;
}

// Makes `made` what the functions in the slots find. false: another one is there, or is coming. One
// that has failed is replaced, and never destroyed: a thread may still be on its way into it.
bool publish(SegmentPlugin* made) {
  SegmentPlugin* before = plugin();
  if (before != nullptr && before->state() != SegmentPlugin::State::kFailed) return false;
  return g_plugin.compare_exchange_strong(before, made, std::memory_order_acq_rel);
}

}  // namespace

Status install_segment_plugin(const PluginOptions& options) {
  if (options.store == nullptr && !options.passthrough_all) {
    return {StatusCode::kInvalidArgument, "a segment plugin without a store"};
  }
  if (options.device < 0) {
    return {StatusCode::kInvalidArgument, fmt::format("device {}", options.device)};
  }
  Result<RealRuntime> real = RealRuntime::find(options.libraries.runtime);
  if (!real) return std::move(real.error());
  auto made = std::make_unique<SegmentPlugin>(options, *real);
  GS_RETURN_IF_ERROR(made->find_slots());
  if (!publish(made.get())) {
    return {StatusCode::kFailedPrecondition, "the segment plugin is installed already"};
  }
  return made.release()->write_slots();  // g_plugin owns it from now on
}

Status uninstall_segment_plugin() {
  if (serving_plugin() == nullptr) {
    return {StatusCode::kFailedPrecondition, "the segment plugin is not installed"};
  }
  GS_RETURN_IF_ERROR(plugin()->restore_slots());
  const std::unique_ptr<SegmentPlugin> gone(g_plugin.exchange(nullptr, std::memory_order_acq_rel));
  return {};
}

bool segment_plugin_is_intact() {
  const SegmentPlugin* const serving = serving_plugin();
  return serving != nullptr && serving->is_intact();
}

PluginCounts plugin_counts() {
  const SegmentPlugin* const serving = serving_plugin();
  return serving == nullptr ? PluginCounts() : serving->counts();
}

CudaError gs_cuda_malloc(void** out, std::size_t size) noexcept {
  return plugin()->allocate(out, size);
}

CudaError gs_cuda_free(void* address) noexcept { return plugin()->free(address); }

CudaError gs_cuda_mem_get_info(std::size_t* free, std::size_t* total) noexcept {
  return plugin()->mem_get_info(free, total);
}

CudaError gs_cuda_enable_peer_access(int peer, unsigned flags) noexcept {
  return plugin()->enable_peer_access(peer, flags);
}

}  // namespace gpushare::plugin
