// Whether a job may send this message now. Peers are not trusted: whatever fails here is answered
// by Refused and changes nothing, and what passes the handlers may rely on.
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {

// errors: kProtocol, with what was wrong.
Status validate(const Table& table, JobId from, const wire::JobMessage& message);

}  // namespace gpushare::sched
