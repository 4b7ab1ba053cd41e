// How fast devices are, beside the one on which the jobs' times were measured. A device may be of a
// kind, since a job may gain more or less by a kind than others do.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::sim {

struct KindSpeed {
  std::string kind;  // "": none with a name
  double speed = 1;

  auto operator<=>(const KindSpeed&) const = default;
};
using SpeedsOfKinds = std::map<std::string, double>;

// "0.5" or "k80:0.5" each, with `between` between two. Speeds are 0.01 to 100. errors:
// kInvalidArgument, with the one that cannot be read.
Result<std::vector<KindSpeed>> parse_speeds(const std::string& text, char between);
// "v100:1/k80:0.2", as a job has them. errors: kInvalidArgument, also for a speed without a kind,
// and for a kind that is there twice.
Result<SpeedsOfKinds> parse_job_speeds(const std::string& text);

}  // namespace gpushare::sim
