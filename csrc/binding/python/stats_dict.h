// The core's figures as Python dictionaries, with the keys that _C.pyi and torch.cuda name.
#pragma once

#include <vector>

#include <pybind11/pybind11.h>

#include "csrc/alloc/blocks/stats.h"
#include "csrc/client/runtime.h"

namespace gpushare::binding {

// pre (all): GIL held.
pybind11::dict to_dict(const alloc::MemoryStats& stats);
pybind11::dict to_dict(const client::JobStats& stats);
pybind11::list to_list(const std::vector<alloc::SegmentInfo>& segments);

}  // namespace gpushare::binding
