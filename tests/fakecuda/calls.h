// Counts of the calls of each function, and the failures that a test has asked for.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fakecuda {

// A function's name without its version: cuMemGetInfo_v2 is cuMemGetInfo.
std::string_view plain_name(std::string_view function);

class Calls {
 public:
  // `faults`: FAKECUDA_FAIL's text, function:nth:error,...
  explicit Calls(const std::string& faults);

  // Counts one call. Returns the error that it shall fail with, or 0.
  int enter(std::string_view function);
  void fail(const std::string& function, long nth, int error);
  [[nodiscard]] long count(const std::string& function) const;
  void reset_counts() { counts_.clear(); }

 private:
  struct Fault {
    long calls_left = 0;
    int error = 0;
  };
  std::map<std::string, long, std::less<>> counts_;
  std::map<std::string, Fault, std::less<>> faults_;
};

}  // namespace fakecuda
