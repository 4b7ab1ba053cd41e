// A lease is asked for once, and of all who hold it. The reason is kept with the lease, for those
// who ask why. Whether the quantum was over is kept too: only then what the holder runs on is its
// overrun (its last turn's debt).
#include "csrc/sched/turns/ask_at_boundary.h"

#include "csrc/sched/turns/gang.h"

namespace gpushare::sched {

void ask_at_boundary(Step& step, Lane& lane, const Job& holder, const std::string& reason) {
  lane.lease->ask(step.now(), reason, step.now() >= lane.quantum_ends);
  step.act({PageAction::Kind::kAsk, holder.id, holder.served.term, 0});
  ask_along(step, lane);
  step.decide(holder.id, "ask", reason);
}

}  // namespace gpushare::sched
