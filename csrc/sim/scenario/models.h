// What the simulated machine costs. The defaults are what gpushare's own benchmarks measured, on
// the CPU device (benchmarks/results/): give those of your machine.
#pragma once

#include "csrc/base/units.h"

namespace gpushare::sim {

constexpr Bytes tenth_gib(std::int64_t tenths) { return Bytes{(tenths << 30) / 10}; }

struct Models {
  // Bytes a second. source: 2026-11-22-memory-2.json, {ram,file}_{spill,restore}_gib_per_second.
  Bytes spill = tenth_gib(206);
  Bytes restore = tenth_gib(183);
  Bytes file_spill = tenth_gib(106);
  Bytes file_restore = tenth_gib(46);
  // Whether copies in both directions go on at full speed at once. Measured: together they move
  // 1.12 times what one does (both_over_one), so they wait for each other.
  bool duplex = false;
  // The cost of opening a lease, without a copy. source: 2026-11-22-handover.json, handover_us.
  Nanos switch_cost = Nanos{28'700};
  // Device memory of a process beside its tensors (a CUDA context). 0 on the CPU; not measured yet
  // on a GPU.
  Bytes context = {};
  // How much slower jobs side by side become: sim_device.h says by what. 0: they do not disturb
  // each other; 1: those that use all of the device share it and gain nothing. source:
  // 2026-11-21-colocation.json: two jobs side by side take one_thread_over_serial = 0.914 of the
  // time that they take one after the other, so each takes 1.83 times as long.
  double interference = 0.83;
  // A process fails once in so much of its time inside iterations, on average; 0: never.
  Nanos failure_every = {};
  // How long it takes until a process that has failed is there again.
  Nanos restart = seconds(60);
  // What a process has done since its last checkpoint is lost when it fails. One is made after each
  // so much of its time inside iterations, at no cost; 0: none is made, and all is lost.
  Nanos checkpoint = {};
};

}  // namespace gpushare::sim
