#include "tests/fakecuda/copies.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace fakecuda {
namespace {

Side side_of(cudaMemcpyKind kind, cudaMemcpyKind to_or_from_host) {
  const bool is_device = kind == cudaMemcpyDeviceToDevice || kind == to_or_from_host;
  return is_device ? Side::kDevice : Side::kAny;
}

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  cudaMemcpyKind kind;
  Kind to_kind;
  Kind from_kind;
};

std::function<void()> moving(void* to, const void* from, size_t bytes) {
  return [=] { std::memmove(to, from, bytes); };
}

// Which part of a copy happens when: see work.h.
Operation operation_of(const Call& call, const Copy& copy) {
  Operation operation;
  operation.name = plain_name(call.function());
  operation.reads = {range_at(copy.from, copy.bytes)};
  operation.writes = {range_at(copy.to, copy.bytes)};
  const bool is_to_host = copy.from_kind == Kind::kDevice && copy.to_kind != Kind::kDevice;
  if (is_to_host && world().work.is_late()) {
    const auto bytes = std::make_shared<std::vector<char>>(copy.bytes);
    operation.has_read = true;
    operation.at_once = moving(bytes->data(), copy.from, copy.bytes);
    operation.later = [bytes, to = copy.to] { std::memcpy(to, bytes->data(), bytes->size()); };
  } else if (copy.from_kind == Kind::kPinned) {
    operation.later = moving(copy.to, copy.from, copy.bytes);
  } else {
    operation.at_once = moving(copy.to, copy.from, copy.bytes);
  }
  return operation;
}

CUresult submit_copy(const Call& call, Copy copy, CUstream handle, bool is_async) {
  World& w = world();
  Stream* stream = w.streams.find(handle, current().device);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!is_async) {
    const CUresult result = w.captures.check_not_capturing(*stream);
    if (result != CUDA_SUCCESS) return result;
  }
  if (copy.bytes == 0) return CUDA_SUCCESS;
  copy.from_kind = w.memory.kind_of(range_at(copy.from, copy.bytes));
  copy.to_kind = w.memory.kind_of(range_at(copy.to, copy.bytes));
  CUresult result = check_access(call.function(), range_at(copy.from, copy.bytes),
                                 side_of(copy.kind, cudaMemcpyDeviceToHost), false);
  if (result != CUDA_SUCCESS) return result;
  result = check_access(call.function(), range_at(copy.to, copy.bytes),
                        side_of(copy.kind, cudaMemcpyHostToDevice), true);
  if (result != CUDA_SUCCESS) return result;
  result = w.work.submit(*stream, operation_of(call, copy));
  if (result != CUDA_SUCCESS) return result;
  const bool is_within_device = copy.from_kind == Kind::kDevice && copy.to_kind == Kind::kDevice;
  if (copy.to_kind == Kind::kPageable || (!is_async && !is_within_device)) {
    w.work.complete(*stream);
  }
  return CUDA_SUCCESS;
}

void write_values(void* to, unsigned value, size_t width, size_t count) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < count; ++i)
    std::memcpy(bytes + i * width, &value, width);
}

}  // namespace

CUresult check_access(const std::string& who, Range range, Side side, bool is_write) {
  World& w = world();
  const Kind kind = w.memory.kind_of(range);
  const bool is_nowhere = side == Side::kDevice && kind == Kind::kPageable;
  const bool by_device = side == Side::kDevice || kind == Kind::kDevice;
  if (range.bytes == 0 || (!is_nowhere && w.memory.is_accessible(range, is_write, by_device))) {
    return CUDA_SUCCESS;
  }
  char text[128];
  std::snprintf(text, sizeof text, " %s [%#zx, +%zu), which is not mapped with that access",
                is_write ? "writes" : "reads", range.begin, range.bytes);
  w.violations.add(who + text);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult copy_async(const Call& call,
                    void* to,
                    const void* from,
                    size_t bytes,
                    cudaMemcpyKind kind,
                    CUstream stream) {
  return submit_copy(call, {to, from, bytes, kind, {}, {}}, stream, true);
}

CUresult copy(const Call& call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return submit_copy(call, {to, from, bytes, kind, {}, {}}, nullptr, false);
}

CUresult fill_async(
    const Call& call, void* to, unsigned value, size_t width, size_t count, CUstream handle) {
  World& w = world();
  Stream* stream = w.streams.find(handle, current().device);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Range range = range_at(to, width * count);
  const CUresult result = check_access(call.function(), range, Side::kDevice, true);
  if (result != CUDA_SUCCESS || count == 0) return result;
  Operation operation;
  operation.name = plain_name(call.function());
  operation.writes = {range};
  operation.at_once = [=] { write_values(to, value, width, count); };
  return w.work.submit(*stream, std::move(operation));
}

CUresult fill(const Call& call, void* to, unsigned value, size_t width, size_t count) {
  return fill_async(call, to, value, width, count, nullptr);
}

}  // namespace fakecuda
