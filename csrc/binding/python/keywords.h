// The keyword arguments of a function that has many of them, as fields to be read by name.
//
// Which problem it solves: pybind11 passes each keyword as a parameter, in the order of a list that
// stands elsewhere, so two of the same type can be exchanged unnoticed. Here each value is read
// where it is used:
//
//     void install(const py::kwargs& given) {
//       Keywords keywords("install", given);
//       config.device = keywords.optional<std::string>("device", "cpu");
//       keywords.check_all_read();
//
// A wrong call raises TypeError, as with any Python function: where a keyword is missing, has a
// value of the wrong type, or is unknown.
//
// pre, for all: GIL held.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <pybind11/pybind11.h>

namespace gpushare::binding {

class Keywords {
 public:
  // `function` is its name for errors. `given` must outlive the object.
  Keywords(std::string function, const pybind11::kwargs& given)
      : function_(std::move(function)), given_(given) {}

  // pre: `Value` has a caster (pybind11/stl.h for strings' lists).
  template <typename Value>
  [[nodiscard]] Value required(const char* name) {
    if (!given_.contains(name)) {
      throw pybind11::type_error(
          fmt::format("{}() is missing the keyword argument '{}'", function_, name));
    }
    return read<Value>(name);
  }
  template <typename Value>
  [[nodiscard]] Value optional(const char* name, Value otherwise) {
    return given_.contains(name) ? read<Value>(name) : std::move(otherwise);
  }
  // Refuses a keyword that was not read until now.
  void check_all_read() const;

 private:
  template <typename Value>
  Value read(const char* name) {
    read_.insert(name);
    try {
      return given_[name].template cast<Value>();
    } catch (const pybind11::cast_error&) {
      throw pybind11::type_error(
          fmt::format("{}() got a value of the wrong type for '{}'", function_, name));
    }
  }

  const std::string function_;
  const pybind11::kwargs& given_;
  std::set<std::string> read_;
};

}  // namespace gpushare::binding
