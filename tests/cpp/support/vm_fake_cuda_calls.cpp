#include "tests/cpp/support/vm_fake_cuda_calls.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "csrc/base/check.h"

#include "tests/cpp/support/vm_fake_cuda_driver.h"

namespace gpushare::testing {
namespace cuda = vm::cuda;
using cuda::Code;

namespace {

FakeCudaDriver* the_fake = nullptr;
thread_local cuda::Context current_context = nullptr;
thread_local int capture_mode = 0;  // global, as each thread begins

FakeCudaDriver& self() {
  GS_CHECK(the_fake != nullptr, "the driver is called after its end");
  return *the_fake;
}

std::byte* pointer_of(cuda::DevicePointer address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

void FakeCudaCalls::install(FakeCudaDriver* fake) {
  GS_CHECK((fake == nullptr) != (the_fake == nullptr), "one fake driver at a time");
  the_fake = fake;
  current_context = nullptr;
  capture_mode = 0;
}

cuda::Context FakeCudaCalls::primary() { return reinterpret_cast<cuda::Context>(0x1000); }
cuda::Context FakeCudaCalls::context() { return current_context; }
void FakeCudaCalls::set_context(cuda::Context context) { current_context = context; }
bool FakeCudaCalls::has_context() { return current_context == primary(); }
bool FakeCudaCalls::is_relaxed() { return capture_mode == cuda::kRelaxed; }

// One call of the driver: counted, failed if it must, else carried out by `body`, which may end
// with an error of its own.
template <typename Body>
Code FakeCudaCalls::call(const char* name, Body body) {
  FakeCudaDriver& fake = self();
  MutexLock lock(fake.mu_);
  const Code entered = fake.enter(name);
  return entered == cuda::kSuccess ? body(fake) : entered;
}

template <typename Body>
Code FakeCudaCalls::call_in_context(const char* name, Body body) {
  FakeCudaDriver& fake = self();
  MutexLock lock(fake.mu_);
  const Code entered = fake.enter_in_context(name);
  return entered == cuda::kSuccess ? body(fake) : entered;
}

void FakeCudaCalls::add_device_calls(cuda::Calls& calls) {
  calls.init = [](unsigned) -> Code {
    return call("init",
                [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS { return cuda::kSuccess; });
  };
  calls.get_version = [](int* version) -> Code {
    return call("get_version", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      *version = 13000;
      return cuda::kSuccess;
    });
  };
  calls.error_name = [](Code code, const char** text) -> Code {
    *text = code == cuda::kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return cuda::kSuccess;
  };
  calls.error_text = [](Code code, const char** text) -> Code {
    *text = code == cuda::kOutOfMemory ? "out of memory" : "unknown error";
    return cuda::kSuccess;
  };
  calls.device_count = [](int* count) -> Code {
    return call("device_count", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      *count = 1;
      return cuda::kSuccess;
    });
  };
  calls.device_get = [](cuda::Device* device, int ordinal) -> Code {
    return call("device_get", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      *device = ordinal;
      return cuda::kSuccess;
    });
  };
  calls.device_name = [](char* name, int size, cuda::Device) -> Code {
    return call("device_name", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      std::snprintf(name, static_cast<std::size_t>(size), "%s", fake.name_.c_str());
      return cuda::kSuccess;
    });
  };
  calls.device_uuid = [](cuda::Uuid* uuid, cuda::Device) -> Code {
    return call("device_uuid", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      for (unsigned char i = 0; i < 16; ++i) {
        uuid->bytes[i] = static_cast<unsigned char>(0xa0 + i);
      }
      return cuda::kSuccess;
    });
  };
  calls.device_size = [](std::size_t* bytes, cuda::Device) -> Code {
    return call("device_size", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      *bytes = fake.memory_.size().to_size();
      return cuda::kSuccess;
    });
  };
  calls.device_attribute = [](int* value, int which, cuda::Device) -> Code {
    return call("device_attribute", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      *value = fake.abilities_[which];
      return cuda::kSuccess;
    });
  };
  calls.granularity = [](std::size_t* bytes, const cuda::AllocationProp*, int) -> Code {
    return call("granularity", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      *bytes = vm::kChunkBytes.to_size();
      return cuda::kSuccess;
    });
  };
}

void FakeCudaCalls::add_context_calls(cuda::Calls& calls) {
  calls.context_retain = [](cuda::Context* context, cuda::Device) -> Code {
    return call("context_retain", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      ++fake.num_contexts_;
      *context = primary();
      return cuda::kSuccess;
    });
  };
  calls.context_release = [](cuda::Device) -> Code {
    return call("context_release", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      GS_CHECK(fake.num_contexts_-- > 0);
      return cuda::kSuccess;
    });
  };
  calls.context_current = [](cuda::Context* context) -> Code {
    return call("context_current", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      *context = current_context;
      return cuda::kSuccess;
    });
  };
  calls.context_set_current = [](cuda::Context context) -> Code {
    return call("context_set_current", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      current_context = context;
      return cuda::kSuccess;
    });
  };
  calls.context_synchronize = []() -> Code {
    return call_in_context("context_synchronize",
                           [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
                             fake.finish_all();
                             return cuda::kSuccess;
                           });
  };
  calls.exchange_capture_mode = [](int* mode) -> Code {
    return call("exchange_capture_mode", [&](FakeCudaDriver&) GS_NO_THREAD_SAFETY_ANALYSIS {
      std::swap(*mode, capture_mode);
      return cuda::kSuccess;
    });
  };
  calls.memory_info = [](std::size_t* free, std::size_t* total) -> Code {
    return call_in_context("memory_info", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      *total = fake.memory_.size().to_size();
      *free = *total - fake.memory_.used().to_size();
      return cuda::kSuccess;
    });
  };
}

void FakeCudaCalls::add_memory_calls(cuda::Calls& calls) {
  calls.reserve = [](cuda::DevicePointer* address, std::size_t size, std::size_t alignment,
                     cuda::DevicePointer, unsigned long long) -> Code {
    return call("reserve", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      std::byte* const base = fake.memory_.reserve(size, alignment);
      if (base == nullptr) return cuda::kOutOfMemory;
      *address = reinterpret_cast<std::uintptr_t>(base);
      return cuda::kSuccess;
    });
  };
  calls.free_address = [](cuda::DevicePointer address, std::size_t size) -> Code {
    return call("free_address", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      fake.memory_.free_address(pointer_of(address), size);
      return cuda::kSuccess;
    });
  };
  calls.create = [](cuda::MemoryHandle* handle, std::size_t size, const cuda::AllocationProp* prop,
                    unsigned long long) -> Code {
    return call_in_context("create", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      fake.last_prop_ = *prop;
      const bool is_on_host = prop->location.type == cuda::kOnHostNode;
      // Handles of the host's memory are for this process alone.
      GS_CHECK(!is_on_host || prop->handle_types == 0);
      const auto made = fake.memory_.create(
          size, is_on_host ? FakeCudaMemory::Side::kHost : FakeCudaMemory::Side::kDevice);
      if (!made) return cuda::kOutOfMemory;
      *handle = *made;
      return cuda::kSuccess;
    });
  };
  calls.release = [](cuda::MemoryHandle handle) -> Code {
    return call_in_context("release", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      fake.memory_.release(handle);
      return cuda::kSuccess;
    });
  };
  calls.map = [](cuda::DevicePointer address, std::size_t size, std::size_t offset,
                 cuda::MemoryHandle handle, unsigned long long) -> Code {
    GS_CHECK(offset == 0);
    return call_in_context("map", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      fake.memory_.map(pointer_of(address), size, handle);
      return cuda::kSuccess;
    });
  };
  calls.unmap = [](cuda::DevicePointer address, std::size_t size) -> Code {
    return call_in_context("unmap", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      fake.check_idle(pointer_of(address), size);
      fake.memory_.unmap(pointer_of(address), size);
      return cuda::kSuccess;
    });
  };
  calls.set_access = [](cuda::DevicePointer address, std::size_t size, const cuda::AccessDesc* to,
                        std::size_t count) -> Code {
    GS_CHECK(count == 1 || count == 2);
    return call_in_context("set_access", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      for (const cuda::AccessDesc& each : std::span(to, count)) {
        GS_CHECK(each.flags == cuda::kReadWrite);
        const bool is_host = each.location.type == cuda::kOnHostNode;
        fake.memory_.allow_access(
            pointer_of(address), size,
            is_host ? FakeCudaMemory::Side::kHost : FakeCudaMemory::Side::kDevice);
      }
      return cuda::kSuccess;
    });
  };
}

void FakeCudaCalls::add_copy_calls(cuda::Calls& calls) {
  calls.copy_out = [](void* host, cuda::DevicePointer device, std::size_t size,
                      cuda::Stream stream) -> Code {
    const std::byte* const from = pointer_of(device);
    return call_in_context("copy_out", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      return fake.queue_copy(stream, {static_cast<std::byte*>(host), from, size, from});
    });
  };
  calls.copy_in = [](cuda::DevicePointer device, const void* host, std::size_t size,
                     cuda::Stream stream) -> Code {
    std::byte* const to = pointer_of(device);
    return call_in_context("copy_in", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      return fake.queue_copy(stream, {to, static_cast<const std::byte*>(host), size, to});
    });
  };
  calls.stream_create = [](cuda::Stream* stream, unsigned flags) -> Code {
    GS_CHECK(flags == cuda::kNonBlocking);
    return call_in_context("stream_create", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      *stream = reinterpret_cast<cuda::Stream>(++fake.last_stream_);
      fake.streams_[*stream];
      return cuda::kSuccess;
    });
  };
  calls.stream_destroy = [](cuda::Stream stream) -> Code {
    return call_in_context("stream_destroy",
                           [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
                             GS_CHECK(fake.streams_.erase(stream) == 1);
                             return cuda::kSuccess;
                           });
  };
  calls.stream_synchronize = [](cuda::Stream stream) -> Code {
    return call_in_context("stream_synchronize",
                           [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
                             fake.finish(fake.streams_.at(stream));
                             return cuda::kSuccess;
                           });
  };
  calls.host_register = [](void* address, std::size_t size, unsigned) -> Code {
    return call_in_context("host_register", [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
      GS_CHECK(fake.registered_.emplace(address, size).second, "pinned already");
      return cuda::kSuccess;
    });
  };
  calls.host_unregister = [](void* address) -> Code {
    return call_in_context("host_unregister",
                           [&](FakeCudaDriver& fake) GS_NO_THREAD_SAFETY_ANALYSIS {
                             GS_CHECK(fake.registered_.erase(address) == 1, "not pinned");
                             return cuda::kSuccess;
                           });
  };
}

cuda::Calls FakeCudaCalls::table() {
  cuda::Calls calls{};
  add_device_calls(calls);
  add_context_calls(calls);
  add_memory_calls(calls);
  add_copy_calls(calls);
  return calls;
}

}  // namespace gpushare::testing
