// How much of a device there really is for jobs: less than was configured, where other processes
// hold some of it, and each process' CUDA context.
//
// A job says how much of its device is free. What is neither free nor our jobs' is others', but
// reports and books are not of one moment: of the job that reports its backed bytes are known, of
// all others only that they are between what they said last and their room. So a report gives
// bounds, and what was believed before stays unless it lies outside them, by more than a
// hysteresis. The difference is withheld in the ledger. That takes nothing away: room that is
// granted stays, and nobody's rises until there is enough.
//
// How large the device is, jobs say too. Of what each user's jobs say, and what was configured, the
// one in the middle is believed, so a user who lies does not decide it alone. A job's word ends
// with the job.
//
// What it does not do: what is free, it believes. A job that lies there can keep others from
// growing, while it lives.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// A smaller contradiction is none.
inline constexpr Bytes kDeviceHysteresis = mib(64);

// `job` said, now, that so much of its device is free; its resident bytes are of the same moment.
// Nothing where the device's size or what is free is unknown (0).
void on_device_free(Step& step, const Job& job, Bytes free);

// A job has said how large its device is, or has ended: what is believed of the device now.
void on_device_total(Step& step);

// "the device has 600.0 MiB less than configured (2.0 GiB): ..."; empty: it has all.
std::string withheld_text(const Device& device);

}  // namespace gpushare::sched
