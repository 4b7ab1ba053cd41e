#!/bin/sh
# Model-checks lease_word.pml, gate.pml and rows.pml: a model as it is must have no error, and each planted bug
# must be found, else the model proves nothing. Needs spin and a C compiler; about 50 s of CPU time.
set -eu

models=$(cd "$(dirname "$0")" && pwd)
model=$models/lease_word.pml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# check NAME EXPECTED CC_FLAGS PAN_FLAGS [SPIN_FLAGS...]: EXPECTED is `clean` or `error`.
check() {
  name=$1 expected=$2 cc_flags=$3 pan_flags=$4
  shift 4
  spin -a "$@" "$model" > spin.log 2>&1 || { cat spin.log; echo "$name: spin failed"; exit 1; }
  # Unquoted on purpose: lists of flags.
  # shellcheck disable=SC2086
  ${CC:-gcc} -O2 -w -DMEMLIM=1024 $cc_flags -o pan pan.c
  # shellcheck disable=SC2086
  timeout 300 ./pan -m200000 $pan_flags > pan.log 2>&1 || { cat pan.log; echo "$name: pan failed"; exit 1; }
  if grep -q -e 'max search depth too small' -e 'Search not completed' -e 'reached -DMEMLIM' pan.log &&
    [ "$expected" = clean ]; then
    cat pan.log
    echo "$name: the search was truncated"
    exit 1
  fi
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  case $expected:$errors in
    clean:0) echo "$name: no error in $states states" ;;
    error:[1-9]*) echo "$name: found, as it must be: $(sed -n 's/^pan:1: //p' pan.log)" ;;
    *)
      cat pan.log
      echo "$name: expected $expected, errors: ${errors:-unknown}"
      exit 1
      ;;
  esac
}

safety='-DSAFETY'
fair='-DNFAIR=3'
waiter='-a -f -N waiter_is_granted'
ask='-a -f -N ask_is_answered'

check 'safety, every wake needed is sent' clean "$safety" ''
check 'safety, wakes lost' clean "$safety" '' -DLOSE_WAKES
check 'a waiter is granted' clean "$fair" "$waiter" -DLIVENESS
check 'a waiter is granted, wakes lost' clean "$fair" "$waiter" -DLIVENESS -DLOSE_WAKES
check 'an ask is answered' clean "$fair" "$ask" -DLIVENESS
check 'an ask is answered, wakes lost' clean "$fair" "$ask" -DLIVENESS -DLOSE_WAKES

check 'planted: taken in the gap by a plain store' error "$safety" '' -DBUG_TAKE_BY_STORE
check 'planted: iteration ended by a plain store' error "$fair" "$ask" -DLIVENESS -DBUG_END_BY_STORE
check 'planted: eventfd written before want' error "$safety" '' -DBUG_EVENT_BEFORE_WANT
check 'planted: no eventfd after a close' error "$fair" "$ask" -DLIVENESS -DBUG_NO_EVENT
check 'planted: no wake after a close' error "$safety" '' -DBUG_NO_WAKE

model=$models/gate.pml
due='-a -f -N due_close_ends'
check 'gate: safety' clean "$safety" ''
check 'gate: a close that is due ends' clean "$fair" "$due" -DLIVENESS
check 'gate, planted: idle before the gate is closed' error "$safety" '' -DBUG_IDLE_WITHOUT_CLOSE
check 'gate, planted: spilled under a handler' error "$safety" '' -DBUG_SPILL_WHILE_HANDLING
check 'gate, planted: opened amid a spill' error "$safety" '' -DBUG_OPEN_AMID_MOVES
check 'gate, planted: a close is not tried again' error "$fair" "$due" -DLIVENESS -DBUG_NO_RETRY

model=$models/rows.pml
check 'rows: safety, nobody waits for ever' clean "$safety" ''
check 'rows: rows that end before their step' clean "$safety" '' -DLATE
check 'rows, planted: each device gives its turns alone' error "$safety" '' -DBUG_EACH_DEVICE_ALONE
check 'rows, planted: ranks stop at their next boundary for good' error "$safety" '' -DLATE -DBUG_NEXT_BOUNDARY
check 'rows, planted: a rank starts before the other knows the step' error "$safety" '' -DBUG_TELL_LATE
check 'rows, planted: a row is over when one rank has stopped' error "$safety" '' -DBUG_CLOSE_EARLY
