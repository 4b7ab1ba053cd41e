/*
 * The gate of a job (csrc/client/gate/gate_state.h, csrc/client/memory/moves.h): its main thread and
 * its client thread under the state lock, with the lease word beside it. lease_word.pml has the word
 * itself and its wake-ups; here every wait may end at any time.
 *
 * Which questions it answers, over all interleavings:
 *   - while a thread is parked the gate is closed, and a word without a lease has a closed gate;
 *   - memory is spilled neither under an iteration nor under a signal's handler;
 *   - an iteration begins with all memory in place, and so does user code after a give-up;
 *   - a close that was not possible (a stream is captured) is done once the capture has ended.
 *
 * What it leaves out: holds, threads that wait for room, stops inside an iteration, memory that moves
 * in the gap, and a handler that waits for a move no longer than two seconds.
 *
 * Macros, set by run.sh: LIVENESS (the ltl claim), and BUG_... (planted bugs, each of which must be
 * found).
 */

#define kIdle 0
#define kWanted 1
#define kOpenBusy 2
#define kOpenGap 3
#define kClosing 4

#define IS_OPEN (state == kOpenBusy || state == kOpenGap)

/* The lease word, without its term. */
byte state = kIdle;
bool asked = false;

bool locked = false;
bool is_closed = true; /* the gate; the first registration closes it */
bool is_parked = false;
bool is_handling = false;
bool is_close_due = false;

/* Moves. */
#define kStill 0
#define kReleasing 1
#define kRestoring 2
byte moving = kStill;
bool is_spilled = false; /* private memory is away */

bool is_capturing = false;
byte captures = 2; /* at most so many */

/* Not in the code: what the assertions speak of. */
bool in_iteration = false;
bool in_handler = false;
bool is_spilling = false;

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline close_gate(ok) {
  d_step {
    ok = is_closed || !is_capturing;
    if
    :: ok -> is_closed = true
    :: else -> skip
    fi
  }
}

inline finish_closing(ok) {
  close_gate(ok);
  is_close_due = !ok;
#ifdef BUG_IDLE_WITHOUT_CLOSE
  ok = true;
#endif
  if
  :: ok -> d_step { assert(state == kClosing); state = kIdle; asked = false }
  :: else -> skip
  fi
}

/* Waits for other moves and takes their place. pre: locked; let go meanwhile. */
inline start_restoring() {
  do
  :: moving == kStill -> break
  :: else -> unlock(); lock()
  od;
  moving = kRestoring
}

/* The copies are made without the lock. */
inline restore() {
  unlock();
  is_spilled = false;
  lock()
}

active proctype main_thread() {
  bool ok, was_closed;
begin:
  if
  :: skip
  :: goto done /* user code without an end, in the gap */
  fi;
  /* The fast path: two steps without the lock. */
  was_closed = is_closed;
  if
  :: !was_closed ->
     atomic {
       if
       :: state == kOpenGap -> state = kOpenBusy; in_iteration = true
       :: else -> skip
       fi
     };
     if
     :: in_iteration -> goto iterate
     :: else -> skip
     fi
  :: else -> skip
  fi;

slow:
  lock();
  is_handling = false;
step:
  if
  :: IS_OPEN && is_closed ->
#ifndef BUG_OPEN_AMID_MOVES
     start_restoring();
#endif
     restore();
     moving = kStill;
     if
     :: IS_OPEN ->
        d_step { is_closed = false; is_parked = false; is_handling = false };
        goto enter
     :: else -> goto step
     fi
  :: IS_OPEN && !is_closed -> goto enter
  :: state == kIdle ->
     close_gate(ok);
     if
     :: !ok -> unlock(); goto begin /* an error; user code may try again */
     :: else -> skip
     fi;
     is_parked = true;
     atomic { state == kIdle -> state = kWanted };
     goto step
  :: state == kClosing ->
     finish_closing(ok);
     if
     :: !ok -> unlock(); goto begin
     :: else -> goto step
     fi
  :: state == kWanted ->
     unlock();
     if
     :: goto again
     :: goto handler
     :: goto give_up
     fi
  fi;
again:
  lock();
  goto step;

enter:
  /* The coordinator may take the lease in the gap at this moment. */
  atomic {
    if
    :: IS_OPEN -> state = kOpenBusy; in_iteration = true
    :: else -> skip
    fi
  };
  if
  :: !in_iteration -> goto step
  :: else -> unlock()
  fi;

iterate:
  assert(!is_spilled);
  in_iteration = false;
  atomic {
    if
    :: asked -> state = kClosing; asked = false
    :: else -> state = kOpenGap
    fi
  };
  if
  :: state == kClosing ->
     lock();
     if
     :: state == kClosing -> finish_closing(ok)
     :: else -> skip
     fi;
     unlock()
  :: else -> skip
  fi;
  goto begin;

handler:
  /* show_memory(), then the handler, then the gate again. */
  lock();
#ifndef BUG_SPILL_WHILE_HANDLING
  is_handling = is_parked;
#endif
  start_restoring();
  moving = kStill;
  unlock();
  in_handler = true;
  in_handler = false;
  goto slow;

give_up:
  lock();
  atomic {
    if
    :: state == kWanted -> state = kIdle
    :: else -> skip
    fi
  };
  start_restoring();
  restore();
  moving = kStill;
  d_step { is_parked = false; is_handling = false };
  /* A lease may have been granted at this very moment. */
  atomic {
    if
    :: IS_OPEN -> state = kClosing; asked = false
    :: else -> skip
    fi
  };
  if
  :: state == kClosing -> finish_closing(ok)
  :: else -> skip
  fi;
  assert(!is_spilled);
  unlock();
  goto begin;

done:
  skip
}

active proctype client_thread() {
  bool ok, may_spill;
end_look:
  do
  :: state == kClosing && asked -> /* the message Close */
     lock();
     if
     :: state == kClosing -> finish_closing(ok)
     :: else -> skip
     fi;
     unlock()
#ifndef BUG_NO_RETRY
  :: is_close_due ->
     lock();
     if
     :: state == kClosing -> finish_closing(ok)
     :: else -> is_close_due = false
     fi;
     unlock()
#endif
  :: !is_close_due && is_parked && !is_spilled -> /* a Revoke */
     lock();
     if
     :: moving == kStill ->
        may_spill = is_parked && state == kWanted && !is_handling;
        moving = kReleasing;
        unlock();
        if
        :: may_spill -> is_spilling = true; is_spilled = true; is_spilling = false
        :: else -> skip
        fi;
        lock();
        moving = kStill
     :: else -> skip
     fi;
     unlock()
  od
}

active proctype coordinator() {
end_look:
  do
  :: atomic { state == kWanted -> state = kOpenBusy; asked = false }
  :: atomic { state == kOpenBusy && !asked -> asked = true }
  :: atomic { state == kOpenGap -> state = kClosing; asked = true }
  od
}

/* Another thread captures a stream, which uses private memory. */
active proctype capturer() {
  do
  :: atomic { captures > 0 && !is_closed -> captures--; is_capturing = true };
     is_capturing = false
  :: captures == 0 -> break
  :: goto stop
  od;
stop:
  skip
}

#define PARKED_IS_CLOSED (locked || !is_parked || is_closed)
#define IDLE_IS_CLOSED (is_closed || (state != kIdle && state != kWanted))
#define SPILLS_ALONE (!is_spilling || (!in_iteration && !in_handler))

#ifdef LIVENESS
ltl due_close_ends { [] (is_close_due -> <> !is_close_due) }
#else
active proctype monitor() {
end_watch:
  atomic { !(PARKED_IS_CLOSED && IDLE_IS_CLOSED && SPILLS_ALONE) -> assert(false) }
}
#endif
