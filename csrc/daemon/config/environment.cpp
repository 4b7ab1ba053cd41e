// One table of variables and options. python/gpushare/_settings/settings.py has the same variables,
// and a test compares the two. GPUSHARE_CONFIG, GPUSHARE_SOCKET and GPUSHARE_DEVICES are read in
// options.cpp, since what they say is needed earlier.
#include "csrc/daemon/config/environment.h"

#include <cstdlib>
#include <functional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/config/settings.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

struct Variable {
  const char* name;
  const char* option;
};

// A capacity says anew what is kept from jobs, so it comes before the reserve.
constexpr Variable kVariables[] = {
    {"GPUSHARE_POLICY", "--policy"},
    {"GPUSHARE_MIN_QUANTUM", "--min-quantum-ms"},
    {"GPUSHARE_MAX_WAIT", "--max-wait-ms"},
    {"GPUSHARE_SWITCH_LOSS", "--switch-loss"},
    {"GPUSHARE_MEMORY_WAIT", "--memory-wait-s"},
    {"GPUSHARE_NUM_LANES", "--num-lanes"},
    {"GPUSHARE_LANES", "--lanes"},
    {"GPUSHARE_TRANSFER_BUDGET", "--transfer-budget"},
    {"GPUSHARE_LINGER", "--linger-s"},
    {"GPUSHARE_ARBITER", "--arbiter-address"},
    {"GPUSHARE_ARBITER_TOKEN_FILE", "--token-file"},
    {"GPUSHARE_CAPACITY", "--capacity"},
    {"GPUSHARE_RESERVE", "--reserve"},
    {"GPUSHARE_HOST_BUDGET", "--host-budget"},
    {"GPUSHARE_SPILL_DIR", "--spill-dir"},
    {"GPUSHARE_HOST_RAM_BUDGET", "--host-ram-budget"},
    {"GPUSHARE_LOG", "--log-level"},
};

// An empty variable counts as unset, except where an empty text means something. Drivers and
// libraries, for which a reserve is, take nothing of a CPU's capacity.
bool is_meant(const Variable& variable, const std::string& text, const DaemonOptions& options) {
  const std::string name = variable.name;
  if (name == "GPUSHARE_RESERVE") return !text.empty() && wire::is_cuda(options.coordinator.device);
  return !text.empty() || name == "GPUSHARE_SPILL_DIR";
}

}  // namespace

// A time needs its unit here, as it does wherever Python reads the variable.
Status apply_environment(const std::function<bool(const Setting&)>& is_given,
                         DaemonOptions& options) {
  for (const Variable& variable : kVariables) {
    const char* text = std::getenv(variable.name);
    const Setting& setting = *find_option(variable.option);
    if (text == nullptr || is_given(setting) || !is_meant(variable, text, options)) continue;
    if (setting.apply(options, text, Nanos{0})) continue;
    return bad_value(variable.name, text, setting);
  }
  return {};
}

}  // namespace gpushare::daemon
