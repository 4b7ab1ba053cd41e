#include "tests/fakecuda/world.h"

#include <pthread.h>

#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakecuda/uuid.h"

namespace fakecuda {
namespace {

void before_fork() { world_mutex().lock(); }
void after_fork_in_parent() { world_mutex().unlock(); }

// As with a real driver, the child cannot use the device; and it must not keep memory alive.
void after_fork_in_child() {
  World& w = world();
  w.is_forked = true;

  w.books.reopen_in_child();
  // A recursive mutex knows its owner by thread id, and the child's is another: it cannot unlock.
  new (&world_mutex()) std::recursive_mutex;
}

}  // namespace

World::World(const Settings& settings_)
    : settings(settings_),
      calls(settings.faults),
      books(settings),
      memory(books, settings_.has_host_memory),
      contexts(books),
      work(streams, violations, world_mutex(), settings.is_late),
      captures(streams) {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// Numbers, or UUIDs as NVML writes them. As with a real driver, the list ends where one is none.
void initialise(World& w) {
  if (w.is_initialised) return;
  w.is_initialised = true;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return;
  std::vector<int> seen;
  std::istringstream names(visible);
  for (std::string name; std::getline(names, name, ',');) {
    int device = 0;
    while (device < w.settings.num_devices && name != std::to_string(device) &&
           name != uuid_text(device))
      ++device;
    if (device == w.settings.num_devices) break;
    seen.push_back(device);
  }
  w.books.see(std::move(seen));
}

World& world() {
  static World* const only = new World(read_settings());
  return *only;
}

std::recursive_mutex& world_mutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

Call::Call(const char* function, Needs needs, Api api) : lock_(world_mutex()), function_(function) {
  failure_ = static_cast<CUresult>(world().calls.enter(function));
  if (failure_ == CUDA_SUCCESS) failure_ = unmet(needs, api);
}

CUresult Call::unmet(Needs needs, Api api) const {
  World& w = world();
  if (needs == Needs::kNothing) return CUDA_SUCCESS;
  if (w.is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (api == Api::kRuntime) {
    initialise(w);
    if (w.books.num_seen() == 0) return CUDA_ERROR_NO_DEVICE;
  }
  if (!w.is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs == Needs::kInit) return CUDA_SUCCESS;
  if (api == Api::kRuntime) {
    const CUresult result = w.contexts.use_from_runtime(current().device);
    current().has_context |= result == CUDA_SUCCESS;
    return result;
  }
  return current().has_context && w.contexts.is_active(current().device)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_CONTEXT;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t as_runtime(CUresult result) {
  // Since CUDA 10.1 both number their errors alike.
  const auto error = static_cast<cudaError_t>(result);
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error() = error;
  return error;
}

}  // namespace fakecuda
