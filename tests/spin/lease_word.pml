/*
 * The lease word (csrc/wire/lease_page.h), the futex of the gate and the eventfd of the coordinator:
 * one job's main thread and client thread, and the coordinator.
 *
 * Which questions it answers, over all interleavings:
 *   - at most one thread closes a lease, and only a closing word becomes kIdle;
 *   - a lease is never open for two terms; none is open while the ledger says closed;
 *   - an iteration runs only in an open lease with the private route, and a closed one has none;
 *   - without any timer nobody sleeps for ever: each wake-up that is needed is sent;
 *   - if wake-ups are lost, timed waits suffice: who waits is granted or gives up, and each ask is
 *     answered.
 *
 * What it leaves out: memory orders (the word is the only thing shared here; ThreadSanitizer judges
 * those, tests/cpp/wire/lease_word_stress_test.cpp), other jobs (they only delay a grant, which not
 * being scheduled does too), and restarts of the coordinator.
 *
 * Macros, set by run.sh: LOSE_WAKES (wakes may be lost, waits are timed), LIVENESS (the ltl claims),
 * and BUG_... (planted bugs, each of which must be found).
 */

#define kIdle 0
#define kWanted 1
#define kOpenBusy 2
#define kOpenGap 3
#define kClosing 4

/* The word as in LeaseWord, its term of two bits: it wraps as the low half's does, only sooner. */
#define STATE(w) ((w) & 7)
#define ASKED(w) (((w) >> 3) & 1)
#define TERM(w) ((w) >> 4)
#define WORD(term, asked, state) (((term) << 4) | ((asked) << 3) | (state))
#define NEXT(term) (((term) + 1) & 3)

byte word = 0;
bool eventfd = false;
chan socket = [1] of { byte }; /* Close(term), coordinator to client thread */

bool sleeping = false; /* the main thread is in the futex's queue */
byte signals = 1;      /* Ctrl-C, at most so often */

bool is_route_private = false;
/* Not in the code: what the assertions speak of. */
byte num_closers = 0;
byte num_open = 0;
bool in_gate = false;
bool is_ask_pending = false; /* the coordinator's: it asked, and has not seen the lease closed */

inline cas(expected, desired, ok) {
  d_step {
    if
    :: word == expected -> word = desired; ok = true
    :: else -> ok = false
    fi
  }
}

inline wake() {
  if
  :: sleeping = false
#ifdef LOSE_WAKES
  :: skip
#endif
  fi
}

/* The kernel compares and queues in one step. `interrupted`: by a signal. */
inline futex_wait(expected, interrupted) {
  interrupted = false;
  d_step {
    if
    :: word == expected -> sleeping = true
    :: else -> skip
    fi
  }
  if
  :: !sleeping -> skip
#ifdef LOSE_WAKES
  :: sleeping -> sleeping = false /* the time has passed */
#endif
  :: d_step { sleeping && signals > 0 -> sleeping = false; signals--; interrupted = true }
  fi
}

/* Route to `outside`, then finish_close, then tell the coordinator and a main thread in the gate. */
inline close_lease(w, ok) {
  num_closers++;
  assert(num_closers == 1);
  is_route_private = false;
  w = word;
  assert(STATE(w) == kClosing);
  d_step {
    assert(word == w);
    word = WORD(TERM(w), 0, kIdle);
    num_open--;
    num_closers--
  }
#ifndef BUG_NO_EVENT
  eventfd = true;
#endif
#ifndef BUG_NO_WAKE
  wake()
#endif
}

inline want(w, ok) {
#ifdef BUG_EVENT_BEFORE_WANT
  eventfd = true;
  cas(w, WORD(TERM(w), 0, kWanted), ok)
#else
  cas(w, WORD(TERM(w), 0, kWanted), ok);
  if
  :: ok -> eventfd = true
  :: else -> skip
  fi
#endif
}

/* try_end, or (is_exception) start_close. */
inline leave_iteration(w, ok, is_exception) {
  do
  :: w = word;
     if
     :: !(STATE(w) == kOpenBusy || (is_exception && STATE(w) == kOpenGap)) ->
        assert(false) /* only this thread leaves kOpenBusy */
     :: else -> skip
     fi;
     if
     :: is_exception || ASKED(w) ->
        cas(w, WORD(TERM(w), 0, kClosing), ok);
        if
        :: ok -> close_lease(w, ok); break
        :: else -> skip
        fi
     :: else ->
#ifdef BUG_END_BY_STORE
        word = WORD(TERM(w), 0, kOpenGap);
        break
#else
        cas(w, WORD(TERM(w), 0, kOpenGap), ok);
        if
        :: ok -> break
        :: else -> skip
        fi
#endif
     fi
  od
}

/* One turn of ask()'s loop; ok: it is over. */
inline ask_once(w, ok, term) {
  w = word;
  if
  :: STATE(w) == kOpenBusy && TERM(w) == term -> cas(w, WORD(term, 1, kOpenBusy), ok)
  :: STATE(w) == kOpenGap && TERM(w) == term ->
#ifdef BUG_TAKE_BY_STORE
     word = WORD(term, 0, kIdle);
     num_open--;
     is_route_private = false;
     eventfd = true;
     ok = true
#else
     cas(w, WORD(term, 1, kClosing), ok);
     if
     :: ok -> socket ! term
     :: else -> skip
     fi
#endif
  :: else -> ok = true /* stale: it closes by itself, and the eventfd follows */
  fi
}

active proctype main_thread() {
  byte w;
  bool ok;
  bool interrupted;

begin_iteration:
  in_gate = true;
  do
  :: w = word;
     if
     :: STATE(w) == kOpenGap ->
        cas(w, WORD(TERM(w), ASKED(w), kOpenBusy), ok);
        if
        :: ok -> break
        :: else -> skip
        fi
     :: STATE(w) == kOpenBusy -> break
     :: STATE(w) == kIdle -> want(w, ok)
     :: else ->
        futex_wait(w, interrupted);
        if
        :: interrupted ->
           w = word; /* give_up */
           if
           :: STATE(w) == kWanted ->
              cas(w, WORD(TERM(w), 0, kIdle), ok);
              if
              :: ok -> eventfd = true; in_gate = false; goto begin_iteration
              :: else -> skip /* granted meanwhile: go on */
              fi
           :: else -> skip
           fi
        :: else -> skip
        fi
     fi
  od;
  in_gate = false;

  /* The iteration, and its first allocation. */
  assert(num_open == 1 && num_closers == 0);
  is_route_private = true;
  assert(STATE(word) == kOpenBusy && num_open == 1 && is_route_private);
  if
  :: leave_iteration(w, ok, false)
  :: leave_iteration(w, ok, true)
  fi;
  if
  :: goto begin_iteration
  :: skip /* stays away from the gate, perhaps with the lease open in the gap */
  fi
}

active proctype client_thread() {
  byte w;
  bool ok;
  byte term;

end_idle:
  do
  :: socket ? term ->
     w = word;
     if
     :: STATE(w) == kClosing && ASKED(w) && TERM(w) == term -> close_lease(w, ok)
     :: else -> skip
     fi
  od
}

active proctype coordinator() {
  byte w;
  bool ok;
  byte term = 0;
  bool is_open = false;

end_idle:
  do
  :: eventfd ->
     eventfd = false;
     w = word;
     if
     :: STATE(w) == kWanted ->
        /* Closed, if it was open, and wanted again before we looked. */
        is_open = false;
        is_ask_pending = false;
        assert(!is_route_private && num_open == 0);
        d_step {
          if
          :: word == w -> word = WORD(NEXT(term), 0, kOpenBusy); num_open++; ok = true
          :: else -> ok = false
          fi
        }
        assert(num_open <= 1);
        if
        :: ok -> term = NEXT(term); is_open = true; wake()
        :: else -> skip /* gave up */
        fi
     :: STATE(w) == kIdle -> is_open = false; is_ask_pending = false
     :: else -> skip
     fi
  :: is_open && !is_ask_pending -> /* somebody else waits: ask */
     is_ask_pending = true;
     do
     :: ask_once(w, ok, term);
        if
        :: ok -> break
#ifdef LIVENESS
        /* Could lose to the job for ever, if a whole iteration of it fitted between this load and
         * this exchange each time. It does not: let the second try win. */
        :: else -> atomic { ask_once(w, ok, term) }; assert(ok); break
#else
        :: else -> skip
#endif
        fi
     od
  od
}

#ifdef LIVENESS
ltl waiter_is_granted { [] (in_gate -> <> !in_gate) }
ltl ask_is_answered { [] (is_ask_pending -> <> !is_ask_pending) }
#endif
