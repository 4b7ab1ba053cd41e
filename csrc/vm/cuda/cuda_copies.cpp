// A copy is queued on the stream of its direction and waited for at once. The stream does not wait
// for the default stream, nor does that wait for it, so copies run beside the user's kernels.
// Streams are made with the first copy and destroyed only where the device can still be used.
#include "csrc/vm/cuda/cuda_copies.h"

#include <cstdint>

#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"

namespace gpushare::vm {

// A device that cannot be used any more takes its streams with it.
CudaCopies::~CudaCopies() {
  MutexLock lock(mu_);
  if ((streams_[kOut] == nullptr && streams_[kIn] == nullptr) || !device_.is_usable()) return;
  const CudaScope scope(device_);
  for (const cuda::Stream stream : streams_) {
    if (stream == nullptr || !scope.status().ok()) continue;
    const cuda::Code code = device_.calls().stream_destroy(stream);
    if (code == cuda::kSuccess) continue;
    log::error("{}", device_.driver().to_status(code, "destroy a stream for copies").message());
  }
}

// The host memory may be pinned or not. From pageable memory the driver copies through a buffer of
// its own, so the call may take as long as the copy.
Status CudaCopies::out(const std::byte* from, std::byte* host, Bytes size) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  const Result<cuda::Stream> stream = this->stream(kOut);
  if (!stream) return stream.error();
  cuda::Code code = device_.calls().copy_out(host, reinterpret_cast<std::uintptr_t>(from),
                                             size.to_size(), *stream);
  if (code == cuda::kSuccess) code = wait_for(*stream);
  return device_.driver().to_status(code, describe("copy out", from, size));
}

Status CudaCopies::in(const std::byte* host, std::byte* to, Bytes size) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  const Result<cuda::Stream> stream = this->stream(kIn);
  if (!stream) return stream.error();
  cuda::Code code =
      device_.calls().copy_in(reinterpret_cast<std::uintptr_t>(to), host, size.to_size(), *stream);
  if (code == cuda::kSuccess) code = wait_for(*stream);
  return device_.driver().to_status(code, describe("copy in", to, size));
}

// After an error too, nothing may be on its way: the caller gives the host memory to others then.
// So the whole device is waited for.
cuda::Code CudaCopies::wait_for(cuda::Stream stream) const {
  const cuda::Code code = device_.calls().stream_synchronize(stream);
  if (code == cuda::kSuccess) return code;
  const Status waited = device_.synchronize("wait for the device after a failed copy");
  if (!waited.ok()) log::error("{}", waited.message());
  return code;
}

// Under the lock, so that two threads make one stream. It is tried again at the next copy if it
// fails.
Result<cuda::Stream> CudaCopies::stream(Direction direction) {
  MutexLock lock(mu_);
  cuda::Stream& stream = streams_.at(direction);
  if (stream != nullptr) return stream;
  const cuda::Code code = device_.calls().stream_create(&stream, cuda::kNonBlocking);
  if (code == cuda::kSuccess) return stream;
  stream = nullptr;
  return fail(device_.driver().to_status(code, "make a stream for copies"));
}

}  // namespace gpushare::vm
