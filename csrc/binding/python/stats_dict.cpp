// Statistics as Python objects. The memory statistics have the keys of torch's CUDA allocator, so
// that code which reads those reads ours as well; gpushare's own figures stand beside them. Bytes
// are whole numbers, times are in seconds.
#include "csrc/binding/python/stats_dict.h"

#include <string>

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// The four figures of torch's Stat: what is now, the most since the last reset_peak, and two sums
// since the last reset_accumulated.
void add(py::dict& dict, const std::string& prefix, const alloc::Stat& stat) {
  const auto set = [&](const char* name, std::int64_t value) {
    dict[py::str(prefix + name)] = value;
  };
  set(".current", stat.current);
  set(".peak", stat.peak);
  set(".allocated", stat.allocated);
  set(".freed", stat.freed);
}

// Torch counts small and large blocks apart, and both together as "all".
void add(py::dict& dict, const std::string& name, const alloc::PooledStat& stat) {
  add(dict, name + ".all", stat.all);
  add(dict, name + ".small_pool", stat.small_pool);
  add(dict, name + ".large_pool", stat.large_pool);
}

py::dict to_dict(const alloc::BlockInfo& block) {
  py::dict dict;
  dict["address"] = block.address;
  dict["size"] = block.size.value();
  dict["requested_size"] = block.requested.value();
  dict["state"] = block.is_active ? "active_allocated" : "inactive";
  return dict;
}

}  // namespace

// The keys that torch.cuda.memory_stats() has come first, then gpushare's own.
py::dict to_dict(const alloc::MemoryStats& stats) {
  py::dict dict;
  add(dict, "allocation", stats.allocation);
  add(dict, "segment", stats.segment);
  add(dict, "active", stats.active);
  add(dict, "inactive_split", stats.inactive_split);
  add(dict, "allocated_bytes", stats.allocated_bytes);
  add(dict, "reserved_bytes", stats.reserved_bytes);
  add(dict, "active_bytes", stats.active_bytes);
  add(dict, "inactive_split_bytes", stats.inactive_split_bytes);
  add(dict, "requested_bytes", stats.requested_bytes);
  dict["num_ooms"] = stats.num_ooms;
  dict["num_alloc_retries"] = stats.num_alloc_retries;
  // Figures that have no meaning here have the value that torch's allocator starts with.
  dict["num_sync_all_streams"] = 0;
  dict["num_device_alloc"] = stats.segment.all.allocated;
  dict["num_device_free"] = stats.segment.all.freed;
  dict["num_oom_rejections"] = 0;
  dict["max_split_size"] = -1;
  for (const char* kind : {"oversize_allocations", "oversize_segments"}) {
    for (const char* figure : {"current", "peak", "allocated", "freed"}) {
      dict[py::str(std::string(kind) + "." + figure)] = 0;
    }
  }
  dict["room_bytes"] = stats.room.value();
  dict["outside_bytes"] = stats.outside_bytes.value();
  dict["lane_bytes"] = stats.lane_bytes.value();
  dict["donated_bytes"] = stats.donated_bytes.value();
  dict["overflow_bytes"] = stats.overflow_bytes.value();
  dict["spilled_bytes"] = stats.spilled_bytes.value();
  dict["live_private_bytes"] = stats.live_private_bytes.value();
  dict["num_operations"] = stats.num_operations;
  return dict;
}

// gpushare.stats(): the job and its leases, then times, then bytes. Keys are part of the public
// interface.
py::dict to_dict(const client::JobStats& stats) {
  py::dict dict;
  dict["job"] = stats.job.value;
  dict["is_managed"] = stats.is_managed;
  dict["is_registered"] = stats.is_registered;
  dict["unmanaged_reason"] = stats.unmanaged_reason;
  dict["lease_state"] = stats.lease_state;
  dict["term"] = stats.term.value;
  dict["iterations"] = stats.iterations;
  dict["optimizer_steps"] = stats.optimizer_steps;
  dict["leases"] = stats.leases;
  dict["reconnects"] = stats.reconnects;
  dict["interruptions"] = stats.interruptions;
  dict["num_cpus"] = stats.num_cpus;
  dict["busy_seconds"] = to_seconds(stats.busy);
  dict["waited_seconds"] = to_seconds(stats.waited);
  dict["moving_seconds"] = to_seconds(stats.moving);
  dict["held_seconds"] = to_seconds(stats.held);
  dict["room_bytes"] = stats.memory.room.value();
  dict["resident_bytes"] = stats.memory.resident.value();
  dict["spilled_bytes"] = stats.memory.spilled.value();
  dict["live_bytes"] = stats.memory.live.value();
  dict["outside_bytes"] = stats.memory.outside.value();
  dict["lane_bytes"] = stats.memory.lane.value();
  dict["donated_bytes"] = stats.memory.donated.value();
  dict["overflow_bytes"] = stats.memory.overflow.value();
  dict["dropped_total_bytes"] = stats.memory.moved.dropped.value();
  dict["spilled_total_bytes"] = stats.memory.moved.spilled.value();
  dict["restored_total_bytes"] = stats.memory.moved.restored.value();
  dict["peak_backed_bytes"] = stats.memory.peak_backed.value();
  return dict;
}

// As torch's snapshot: a dict for each segment, with its blocks. The sizes of a segment are sums
// over its active blocks.
py::list to_list(const std::vector<alloc::SegmentInfo>& segments) {
  py::list list;
  for (const alloc::SegmentInfo& segment : segments) {
    py::list blocks;
    Bytes active;
    Bytes requested;
    for (const alloc::BlockInfo& block : segment.blocks) {
      blocks.append(to_dict(block));
      if (!block.is_active) continue;
      active += block.size;
      requested += block.requested;
    }
    py::dict dict;
    dict["address"] = segment.address;
    dict["total_size"] = segment.total_size.value();
    dict["device"] = 0;
    dict["stream"] = 0;
    dict["requested_size"] = requested.value();
    dict["allocated_size"] = active.value();
    dict["active_size"] = active.value();
    dict["backed_size"] = segment.backed.value();
    dict["spilled_size"] = segment.spilled.value();
    dict["segment_type"] = segment.pool;
    dict["arena"] = segment.arena;
    dict["blocks"] = std::move(blocks);
    list.append(std::move(dict));
  }
  return list;
}

}  // namespace gpushare::binding
