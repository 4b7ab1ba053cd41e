#include "tests/fakecuda/errors.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "tests/fakecuda/uuid.h"
#include "tests/fakecuda/world.h"

namespace fakecuda {
namespace {

constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "cudaSuccess", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue",
     "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation",
     "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError",
     "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized",
     "invalid device context"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem",
     "OS call failed or operation not supported on this OS"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound",
     "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported",
     "operation not supported (the fake device runs no kernels)"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

constexpr ErrorText kUnknown = {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown",
                                "unrecognized error code"};

}  // namespace

const ErrorText& text_of_error(CUresult error) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [=](const auto& text) { return text.error == error; });
  return found == std::end(kErrors) ? kUnknown : *found;
}

void write_uuid(char* bytes, int device) {
  const auto uuid = uuid_of(world().books.place_of(device));
  std::memcpy(bytes, uuid.data(), uuid.size());
}

void write_pci_bus_id(char* text, size_t size, int device) {
  std::snprintf(text, size, "0000:%02X:00.0", static_cast<unsigned>(device + 1));
}

}  // namespace fakecuda
