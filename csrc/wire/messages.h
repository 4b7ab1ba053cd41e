// Every message between a job and the coordinator: JobMessage (job_messages.h) goes there, and
// CoordinatorMessage (coordinator_messages.h) comes back. Leases are opened and asked back through
// the page (lease_page.h), which is faster; sizes and names go over the socket.
//
// Include this where both directions are handled, and one of the two elsewhere: a changed message
// is compiled again wherever it is included.
//
// clang-format off
//   job                               coordinator
//    | Hello ------------------------> | connects; its true state after a restart of the coordinator
//    | <---------------------- Welcome | job number, epoch, first room
//    | Need(n, bytes) ---------------> | cannot back another chunk within its room
//    | <--- Grant(n, room) | Denied(n) |
//    | Consumed(n) ------------------> | the new room is in force
//    | Register ---------------------> | has a model; wants turns
//    | <---- Registered, page, eventfd |
//    | Wanted (page) ----------------> |
//    | <--- the lease word (page): kOpenBusy, term + 1
//    | Closed (page) ----------------> |
//    | <------------- Revoke(n, bytes) | another job needs room
//    | Released(n, bytes, more) -----> | so many bytes are really free now, room is lower by them
// clang-format on
//
// Room: the bytes of device memory a job may have backed. The coordinator keeps
// sum(room) <= capacity; a job keeps backed <= room. So the device is never overcommitted, whoever
// is late. Room rises with Grant, which states the new total, and falls with Released, which states
// the difference. `n` numbers the coordinator's Grants and Revokes of one job, rising by one each;
// a Need has a number of the job's own.
//
// Lanes: memory that is free at boundaries is backed by slots of a pool that the jobs of a lane
// share, in a memfd of the coordinator's. LaneChanged says what a job did at a close: it gave room
// up for slots of the pool, or kept slots that hold live blocks, as room. LaneTable, before a
// lease, says which slots there are. The pool counts against the capacity once.
#pragma once

#include "csrc/wire/coordinator_messages.h"
#include "csrc/wire/job_messages.h"
