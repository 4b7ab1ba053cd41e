/*
 * Rows of gangs over several devices (csrc/host/gang_rows.h): two gangs of two ranks on the same two
 * devices, the coordinator that opens and closes rows, and the machine of each device that grants
 * leases. A rank ends a step only when the other rank of its gang has begun it.
 *
 * Which questions it answers, over all interleavings:
 *   - nobody waits for ever: each rank makes all its steps, or its gang has lost a rank;
 *   - the two devices are never leased to two gangs at once;
 *   - both ranks of a row are told the same step before one of them has a lease;
 *   - a row that is extended while its ranks run does no harm, and neither does a rank that is killed
 *     anywhere;
 *   - nor does a row that ends before its step, as others have waited for long (LATE): the ranks stop
 *     at their next boundaries, and one of them may wait inside a step for one that has stopped. Then
 *     nothing moves, and both go on for a step. That is tried too where a rank was only slow.
 *
 * What it leaves out: time, ranks that count differently or are away, single jobs, the lease word
 * (lease_word.pml), and a coordinator that is killed.
 *
 * Macros, set by run.sh: LATE, and BUG_... (planted bugs, each of which must be found).
 */

#define TOTAL 3 /* steps of each rank */
#define RANK(g, r) ((g)*2 + (r))
#define PEER(i) ((i) ^ 1)
#define DEVICE(i) ((i) & 1)
#define GANG(i) ((i) >> 1)

bool wants[4], lease[4], alive[4] = true, done[4];
bool heard[4];     /* the coordinator believes that it has a lease; it hears of the end later */
byte begun[4], count[4];
byte stop_at[4];   /* on its page */
bool may_begin[4]; /* as the machine of its device was told */
byte until[2];     /* of the gang's row */
bool is_open[2], is_closing[2];
bool is_extending = false;
#ifdef LATE
byte extensions = 0;
byte num_late = 2;     /* rows that end before their step */
byte too_early = 1; /* times that a slow rank is taken for one that waits */
byte shift[4];      /* is added to a rank's own count */
#define STEPS(i) (count[i] + shift[i])
#else
byte extensions = 1;
#define STEPS(i) count[i]
#endif

#define IS_GONE(i) (!alive[i] || done[i])
#define IS_BETWEEN(i) (alive[i] && count[i] < TOTAL && begun[i] == count[i])
#define HAS_ROW(g) (is_open[g] || is_closing[g])

/* The rank waits at two places: in its gate, and inside a step for the other rank. */
proctype Rank(byte i) {
  do
  :: atomic { !alive[i] || count[i] == TOTAL -> break }
  :: atomic { IS_BETWEEN(i) && lease[i] -> begun[i]++ }
  :: atomic { IS_BETWEEN(i) && !lease[i] && !wants[i] -> wants[i] = true }
  :: d_step {
      alive[i] && begun[i] > count[i] && begun[PEER(i)] >= begun[i] ->
      count[i]++;
      if
      :: STEPS(i) >= stop_at[i] -> lease[i] = false
#ifdef LATE
      :: STEPS(i) < stop_at[i] && is_closing[GANG(i)] -> lease[i] = false
#endif
      :: else
      fi
    }
  /* The other one was killed: this one's collective fails. */
  :: atomic { alive[i] && begun[i] > begun[PEER(i)] && !alive[PEER(i)] -> break }
  od;
  atomic { lease[i] = false; wants[i] = false; done[i] = true }
}

/* A rank is killed, at any time, or none. Which one makes no difference: all are alike. */
proctype Killer() {
  if
  :: d_step { alive[0] = false; lease[0] = false; wants[0] = false }
  :: true
  fi
}

/* The machine of a device. A lease is heard to be over before the next is granted. */
proctype Device(byte d) {
  byte a = RANK(0, d), b = RANK(1, d);
end:
  do
  :: atomic { heard[a] && !lease[a] -> heard[a] = false }
  :: atomic { heard[b] && !lease[b] -> heard[b] = false }
#ifdef BUG_EACH_DEVICE_ALONE
  :: atomic { wants[a] && !heard[a] && !heard[b] -> wants[a] = false; lease[a] = true; heard[a] = true }
  :: atomic { wants[b] && !heard[a] && !heard[b] -> wants[b] = false; lease[b] = true; heard[b] = true }
#else
  :: atomic {
      wants[a] && !heard[a] && !heard[b] && may_begin[a] && STEPS(a) < stop_at[a] ->
      assert(is_extending || IS_GONE(PEER(a)) || stop_at[a] == stop_at[PEER(a)]);
      assert(!lease[RANK(1, 0)] && !lease[RANK(1, 1)]);
      wants[a] = false; lease[a] = true; heard[a] = true
    }
  :: atomic {
      wants[b] && !heard[a] && !heard[b] && may_begin[b] && STEPS(b) < stop_at[b] ->
      assert(is_extending || IS_GONE(PEER(b)) || stop_at[b] == stop_at[PEER(b)]);
      assert(!lease[RANK(0, 0)] && !lease[RANK(0, 1)]);
      wants[b] = false; lease[b] = true; heard[b] = true
    }
#endif
  od
}

#define MAX(x, y) ((x) > (y) -> (x) : (y))
#define IS_READY(g)                                                                      \
  ((wants[RANK(g, 0)] || IS_GONE(RANK(g, 0))) && (wants[RANK(g, 1)] || IS_GONE(RANK(g, 1))) && \
   !(IS_GONE(RANK(g, 0)) && IS_GONE(RANK(g, 1))) && !heard[RANK(g, 0)] && !heard[RANK(g, 1)])
#define IS_COMING(i) (wants[i] && is_open[GANG(i)] && STEPS(i) < until[GANG(i)])

#define IS_STUCK(i, j)                                                                     \
  (alive[i] && alive[j] && begun[i] > count[i] && heard[i] && wants[j] && !heard[j] &&     \
   (is_closing[GANG(j)] || STEPS(j) >= stop_at[j]))

/* The coordinator's part for one gang; it is one thread, so its parts take turns. What it does in one
 * turn is not atomic: ranks run meanwhile. */
bool is_busy = false;

proctype Coordinator(byte g) {
  byte a = RANK(g, 0), b = RANK(g, 1);
end:
  do
  /* Opens the row: first the pages of all ranks, then the machines. */
  :: atomic {
      !is_busy && IS_READY(g) && !HAS_ROW(0) && !HAS_ROW(1) -> is_busy = true;
      until[g] = MAX(STEPS(a), STEPS(b)) + 1;
      if
      :: until[g]++
      :: skip
      fi
    };
    stop_at[a] = until[g];
#ifdef BUG_TELL_LATE
    may_begin[a] = true;
#endif
    stop_at[b] = until[g];
    d_step { is_open[g] = true; may_begin[a] = true };
    d_step { may_begin[b] = true; is_busy = false }
  /* A rank was killed: the row begins nothing any more. */
  :: d_step {
      !is_busy && is_open[g] && (!alive[a] || !alive[b]) ->
      is_open[g] = false; is_closing[g] = true; may_begin[a] = false; may_begin[b] = false
    }
  /* Nobody has a lease, or is about to get one: all have reached the end, or are between two steps. */
  :: d_step {
#ifdef BUG_CLOSE_EARLY
      !is_busy && HAS_ROW(g) && !heard[a] && !IS_COMING(a) ->
#else
      !is_busy && HAS_ROW(g) && !heard[a] && !heard[b] && !IS_COMING(a) && !IS_COMING(b) ->
#endif
      is_open[g] = false; is_closing[g] = false; may_begin[a] = false; may_begin[b] = false
    }
#ifdef LATE
  /* Others have waited for long. */
  :: d_step {
      !is_busy && is_open[g] && num_late > 0 -> num_late--; is_open[g] = false; is_closing[g] = true;
      may_begin[a] = false; may_begin[b] = false
    }
#ifndef BUG_NEXT_BOUNDARY
  /* A rank is inside a step, and the other has stopped: after a while both go on. */
  :: atomic {
      !is_busy && HAS_ROW(g) && (IS_STUCK(a, b) || IS_STUCK(b, a)) && (timeout || too_early > 0) ->
      if
      :: timeout
      :: !timeout -> too_early--
      fi;
      if
      :: IS_STUCK(a, b) -> shift[a] = STEPS(b) - count[a]
      :: else -> shift[b] = STEPS(a) - count[b]
      fi;
      is_busy = true; is_extending = true; until[g] = MAX(STEPS(a), STEPS(b)) + 1
    };
    stop_at[a] = until[g];
    stop_at[b] = until[g];
    d_step {
      is_extending = false; is_busy = false; is_open[g] = true; is_closing[g] = false;
      may_begin[a] = true; may_begin[b] = true
    }
#endif
#endif
  /* Nobody else waits: the end is moved while the ranks run, for one after the other. */
  :: atomic {
      !is_busy && is_open[g] && extensions > 0 -> is_busy = true; extensions--; is_extending = true
    };
    until[g]++;
    stop_at[a] = until[g];
    stop_at[b] = until[g];
    d_step { is_extending = false; is_busy = false }
  od
}

init {
  atomic {
    run Rank(0); run Rank(1); run Rank(2); run Rank(3);
    run Device(0); run Device(1);
    run Coordinator(0); run Coordinator(1); run Killer()
  }
}
