// Reports come from other machines too, so their numbers are cut to what rows can multiply and add
// up without an overflow.
#include "csrc/host/rank_report.h"

#include <algorithm>

namespace gpushare::host {

RankReport bounded(RankReport report) {
  report.steps = std::min(report.steps, kMostSteps);
  report.stop_at = std::min(report.stop_at, kMostSteps);
  for (Nanos* time : {&report.iteration, &report.switching, &report.gap})
    *time = std::min(*time, kMostRankTime);
  return report;
}

}  // namespace gpushare::host
