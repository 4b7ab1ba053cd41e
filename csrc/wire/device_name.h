// How devices are called: "cpu", or "cuda:" and the UUID that the driver gives a GPU ("GPU-...") or
// a part of one ("MIG-..."). A GPU's number differs between processes (CUDA_VISIBLE_DEVICES); its
// UUID does not, and is safe in a file's name. A machine's memory may be divided into several CPU
// devices with a budget each, "cpu:0" to "cpu:63". A job that says "cpu" to a coordinator of such
// devices may have any of them.
#pragma once

#include <string_view>

namespace gpushare::wire {

inline constexpr std::string_view kCudaPrefix = "cuda:";
// For error texts.
inline constexpr auto kDeviceNames =
    "cpu, cpu:NUMBER, cuda:GPU-UUID or cuda:MIG-UUID, as nvidia-smi -L says";
// The CPU, or any of its devices.
inline constexpr std::string_view kAnyCpu = "cpu";
// All CUDA devices of a host that one coordinator has. No job may say it.
inline constexpr std::string_view kAllCuda = "cuda";

// Lower-case, so that one device has one name.
bool is_device_name(std::string_view name);
bool is_cuda(std::string_view name);

}  // namespace gpushare::wire
