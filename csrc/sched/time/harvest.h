// What opportunistic jobs may use of a lane beside guaranteed ones (the two classes of AntMan):
// under the policy `priority`, the time that those are away, and no more.
//
// An iteration of an opportunistic job begins only if few of the returns that may come
// (gap_profile.h) would have to wait for its end, and its lease is asked back in time for that.
// Where nothing is known of the return, it runs until the guaranteed job wants the lane. How far
// both can be trusted shows: where returns have to wait for opportunistic iterations by more than
// kAllowedHarm of the time between two of them, on average, the job's `share` is lowered, and each
// that has not waited for more raises it (additive increase, multiplicative decrease). Iterations
// count as that much longer, and where nothing is known the lane rests after an opportunistic lease
// that ended by itself, so that it is used that much.
//
// An opportunistic job whose iterations fit into no gap gets one of them whenever it has waited for
// max_wait.
// source: Xiao et al., "AntMan: Dynamic Scaling on GPU Clusters for Deep Learning" (OSDI 2020).
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The part of the time between two returns that a guaranteed job may wait for opportunistic ones.
inline constexpr double kAllowedHarm = 0.01;

// Whether opportunistic jobs are left the gaps of the holder: it is guaranteed, and the policy
// lists harvesting().
bool is_harvested(const Device& device, const Job& holder);
// Whether jobs of that class get the gaps of the holder, and no more.
bool gets_only_gaps(const Device& device, const Job& holder, wire::Priority priority);

// Whether opportunistic jobs may have the rest of the gap that the holder is in since `elapsed`.
// Nothing: that cannot be said, as of a job that is not guaranteed.
std::optional<bool> is_worth_harvesting(const Table& table,
                                        const Lane& lane,
                                        const Job& holder,
                                        Nanos elapsed);

// When to look at the guaranteed holder for the beginning of its gap. Nothing: as at others.
std::optional<Nanos> look_for_gap(const Table& table,
                                  const Lane& lane,
                                  const Job& holder,
                                  Nanos now);

}  // namespace gpushare::sched
