#include "tests/fakecuda/calls.h"

#include <csignal>
#include <cstdio>
#include <sstream>

#include "tests/fakecuda/settings.h"

namespace fakecuda {

std::string_view plain_name(std::string_view function) {
  const size_t length = function.size();
  const bool has_version = length > 3 && function[length - 3] == '_' &&
                           function[length - 2] == 'v' && function[length - 1] >= '2' &&
                           function[length - 1] <= '9';
  return has_version ? function.substr(0, length - 3) : function;
}

Calls::Calls(const std::string& faults) {
  std::istringstream entries(faults);
  for (std::string entry; std::getline(entries, entry, ',');) {
    char name[128];
    long nth = 0;
    int error = 0;
    if (std::sscanf(entry.c_str(), "%127[^:]:%ld:%d", name, &nth, &error) != 3) {
      refuse("FAKECUDA_FAIL: \"" + entry + "\" is not function:nth:error");
    }
    fail(name, nth, error);
  }
}

int Calls::enter(std::string_view function) {
  const std::string_view name = plain_name(function);
  const auto counted = counts_.find(name);
  if (counted != counts_.end()) {
    ++counted->second;
  } else {
    counts_.emplace(name, 1);
  }
  const auto found = faults_.find(name);
  if (found == faults_.end() || --found->second.calls_left > 0) return 0;
  const int error = found->second.error;
  faults_.erase(found);
  if (error < 0) std::raise(-error);
  return error;
}

void Calls::fail(const std::string& function, long nth, int error) {
  const std::string name(plain_name(function));
  if (nth <= 0) {
    faults_.erase(name);
  } else {
    faults_[name] = {nth, error};
  }
}

long Calls::count(const std::string& function) const {
  const auto found = counts_.find(plain_name(function));
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace fakecuda
