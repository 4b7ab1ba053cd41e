// Units and ids as distinct types, so that a byte count cannot be passed for a time.
//
// A Quantity is a signed 64-bit count of one unit. Signed, because differences ("how many bytes are
// missing") are common and an unsigned one wraps silently. Conversions are explicit: `Bytes{4096}`,
// `bytes.value()`. Ids are ordered and hashable but have no arithmetic.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace gpushare {

template <typename Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t value) : value_(value) {}

  [[nodiscard]] constexpr std::int64_t value() const { return value_; }
  // pre: value() >= 0.
  [[nodiscard]] constexpr std::size_t to_size() const { return static_cast<std::size_t>(value_); }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, std::int64_t factor) {
    return Quantity{a.value_ * factor};
  }
  friend constexpr std::int64_t operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  friend constexpr Quantity operator/(Quantity a, std::int64_t divisor) {
    return Quantity{a.value_ / divisor};
  }

 private:
  std::int64_t value_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
// Durations and points of CLOCK_MONOTONIC alike.
using Nanos = Quantity<struct NanosTag>;

constexpr Bytes kib(std::int64_t n) { return Bytes{n << 10}; }
constexpr Bytes mib(std::int64_t n) { return Bytes{n << 20}; }
constexpr Bytes gib(std::int64_t n) { return Bytes{n << 30}; }
constexpr Nanos micros(std::int64_t n) { return Nanos{n * 1'000}; }
constexpr Nanos millis(std::int64_t n) { return Nanos{n * 1'000'000}; }
constexpr Nanos seconds(std::int64_t n) { return Nanos{n * 1'000'000'000}; }
constexpr double to_seconds(Nanos t) { return static_cast<double>(t.value()) * 1e-9; }

// pre, of both functions: size >= 0, step > 0.
constexpr Bytes round_down(Bytes size, Bytes step) {
  return Bytes{size.value() / step.value() * step.value()};
}
constexpr Bytes round_up(Bytes size, Bytes step) {
  return Bytes{(size.value() + step.value() - 1) / step.value() * step.value()};
}

// "20.0 MiB", "512 B", "1.5 GiB": one form for logs, errors and status.
std::string to_string(Bytes size);
// "1.2 s", "35 ms", "4 us", "12 ns".
std::string to_string(Nanos time);
// "2GiB", "512 MiB", "1.5 GB", "1048576" -> bytes; -1 B if `text` is no size, or a number from 1 B
// to below 1 MiB without a unit.
Bytes parse_bytes(const std::string& text);

// A number that only names something. Comparing is all that can be done with it, so an id cannot be
// passed for a count, nor one kind of id for another.
template <typename Tag, typename Rep>
struct Id {
  Rep value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

// A job's number at one coordinator, counted from 1; 0 is no job.
using JobId = Id<struct JobIdTag, std::uint64_t>;
// A lane's number on its device, counted from 0.
using LaneId = Id<struct LaneIdTag, std::uint32_t>;
// A lease's number, counted from 1 in a registration; 0 is no lease.
using Term = Id<struct TermTag, std::uint64_t>;

}  // namespace gpushare

template <typename Tag, typename Rep>
struct std::hash<gpushare::Id<Tag, Rep>> {
  std::size_t operator()(gpushare::Id<Tag, Rep> id) const { return std::hash<Rep>{}(id.value); }
};
