// Counts what one thread's cache handed out and took back since the books were last told.
//
// Which problem it solves: the books are under the allocator's lock, which a cache does without. A
// figure's peak is kept relative to its start, so Books::add() finds the true peak where one thread
// allocates. With several, what another thread has not told yet is missed: at most as many bytes
// as its cache may hold.
//
// threads: none; the cache's lock covers it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "csrc/alloc/blocks/size_class.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class Tally {
 public:
  struct Figure {
    std::int64_t current = 0;  // change since the start
    std::int64_t peak = 0;     // highest change; 0 at least
  };
  struct Figures {
    Figure blocks, bytes, requested;
  };
  struct Sums {
    std::int64_t blocks = 0, bytes = 0, requested = 0;
  };

  void on_allocate(SizeClass size_class, Bytes size, Bytes requested) {
    OfClass& of = of_class_[static_cast<std::size_t>(size_class)];
    ++of.handed_out.blocks;
    of.handed_out.bytes += size.value();
    of.handed_out.requested += requested.value();
    raise(of.figures, size.value(), requested.value());
    raise(all_, size.value(), requested.value());
  }
  void on_free(SizeClass size_class, Bytes size, Bytes requested) {
    lower(of_class_[static_cast<std::size_t>(size_class)].figures, size.value(), requested.value());
    lower(all_, size.value(), requested.value());
    ++num_frees_;
  }

  [[nodiscard]] const Figures& all() const { return all_; }
  [[nodiscard]] const Figures& figures(SizeClass size_class) const {
    return of_class_[static_cast<std::size_t>(size_class)].figures;
  }
  // Everything that was handed out, whatever came back.
  [[nodiscard]] const Sums& handed_out(SizeClass size_class) const {
    return of_class_[static_cast<std::size_t>(size_class)].handed_out;
  }
  // Allocations and frees.
  [[nodiscard]] std::int64_t num_operations() const {
    return of_class_[0].handed_out.blocks + of_class_[1].handed_out.blocks + num_frees_;
  }

 private:
  struct OfClass {
    Figures figures;
    Sums handed_out;
  };

  static void raise(Figure& figure, std::int64_t by) {
    figure.current += by;
    if (figure.current > figure.peak) figure.peak = figure.current;
  }
  static void raise(Figures& figures, std::int64_t size, std::int64_t requested) {
    raise(figures.blocks, 1);
    raise(figures.bytes, size);
    raise(figures.requested, requested);
  }
  static void lower(Figures& figures, std::int64_t size, std::int64_t requested) {
    --figures.blocks.current;
    figures.bytes.current -= size;
    figures.requested.current -= requested;
  }

  Figures all_;
  std::array<OfClass, 2> of_class_;  // by SizeClass
  std::int64_t num_frees_ = 0;
};

}  // namespace gpushare::alloc
