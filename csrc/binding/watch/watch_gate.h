// The gate that automatic boundaries go through: this process's own, or a Python object in its
// place, which `gpushare verify` uses to move all memory at each boundary.
#pragma once

#include <cstdint>
#include <memory>

#include "csrc/base/units.h"
#include "csrc/binding/python/python_ref.h"
#include "csrc/client/runtime.h"

namespace gpushare::binding {

// pre of all: GIL held. throws: what a signal's handler has raised, the gate has refused, or the
// Python object raises.
class WatchGate {
 public:
  virtual ~WatchGate() = default;
  // Returns inside an iteration.
  virtual void enter() = 0;
  // A boundary.
  virtual void leave(wire::BoundaryKind kind, bool is_optimizer_step) = 0;
  // An exception has ended the iteration.
  virtual void close() = 0;
  // An optimizer's step begins. Returns the number of leases so far.
  virtual std::uint64_t begin_step() = 0;
  [[nodiscard]] virtual Bytes live() = 0;
  // Whether somebody waits for the lease.
  [[nodiscard]] virtual bool is_asked() = 0;
};

// Process::get() when it is used.
std::unique_ptr<WatchGate> make_process_gate();
// An object with the methods of gpushare._torch.gate.Gate.
std::unique_ptr<WatchGate> make_python_gate(Ref gate);

}  // namespace gpushare::binding
