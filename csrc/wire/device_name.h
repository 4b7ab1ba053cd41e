// How devices are called: "cpu", or "cuda:" and the UUID that the driver gives a GPU ("GPU-...") or
// a part of one ("MIG-..."). A GPU's number differs between processes (CUDA_VISIBLE_DEVICES); its
// UUID does not, and is safe in a file's name.
#pragma once

#include <string_view>

namespace gpushare::wire {

inline constexpr std::string_view kCudaPrefix = "cuda:";
// For error texts.
inline constexpr auto kDeviceNames = "cpu, cuda:GPU-UUID or cuda:MIG-UUID, as nvidia-smi -L says";

// Lower-case, so that one device has one name.
bool is_device_name(std::string_view name);
bool is_cuda(std::string_view name);

}  // namespace gpushare::wire
