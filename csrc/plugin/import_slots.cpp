// Replaces all requested slots or none. The work has two phases. First every request is resolved to
// its slot and nothing is changed, so a library of an unexpected build is found out before torch
// calls us. Then the slots are written one after the other. If a write fails, those already written
// are put back.
//
// What may go wrong: a library does not import the symbol, or imports it twice. Then the request is
// refused, unless it is optional and no slot was found. Another tool may replace a slot later on.
// restore() then leaves that slot alone and says so.
#include "csrc/plugin/import_slots.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"

namespace gpushare::plugin {
namespace {

// Says why a request cannot be met: its library is not loaded, does not import the symbol, or has
// several slots for it.
Status refuse(const SlotRequest& request, std::size_t num_libraries, std::size_t num_slots) {
  const auto& [importer, symbol, function, is_optional] = request;
  if (num_libraries == 0) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} is not loaded, so its {} cannot be replaced", importer, symbol)};
  }
  if (num_slots == 0) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} imports no {}: is it linked statically?", importer, symbol)};
  }
  return {StatusCode::kFailedPrecondition,
          fmt::format("{} imports {} through {} slots in {} loaded files, and 1 was expected",
                      importer, symbol, num_slots, num_libraries)};
}

}  // namespace

// Several loaded files may match the library's name, so the slots of all of them are counted.
Status ImportSlots::find_slot(const SlotRequest& request) {
  std::vector<LoadedLibrary> found = LoadedLibrary::find_all(
      [&](const std::string& path) { return path.ends_with(request.importer); });
  std::vector<ImportSlot> slots;
  for (const LoadedLibrary& library : found)
    std::ranges::copy(library.slots_of(request.symbol), std::back_inserter(slots));
  if (slots.empty() && request.is_optional) return {};
  if (slots.size() != 1) return refuse(request, found.size(), slots.size());
  slots_.push_back({request, slots.front(), read_slot(slots.front())});
  std::ranges::move(found, std::back_inserter(libraries_));
  return {};
}

Result<ImportSlots> ImportSlots::find(std::span<const SlotRequest> requests) {
  ImportSlots all;
  for (const SlotRequest& request : requests) {
    if (Status found = all.find_slot(request); !found.ok()) return fail(std::move(found));
  }
  return all;
}

// The slots are written one after the other. A thread that calls through them in between meets old
// and new functions, which is why the functions must stand ready before.
Status ImportSlots::write() {
  for (const Replaced& replaced : slots_) {
    Status written = write_slot(replaced.slot, replaced.request.function);
    if (written.ok()) continue;
    // restore() passes over the slots that still hold their old value.
    if (const Status undone = restore(); !undone.ok()) log::warn("{}", undone.message());
    return written;
  }
  return {};
}

Result<ImportSlots> ImportSlots::replace(std::span<const SlotRequest> requests) {
  Result<ImportSlots> found = find(requests);
  if (!found) return found;
  if (Status written = found->write(); !written.ok()) return fail(std::move(written));
  return found;
}

// One load for each slot, so this can be asked often.
bool ImportSlots::are_intact() const {
  return std::ranges::all_of(slots_, [](const Replaced& replaced) {
    return read_slot(replaced.slot) == replaced.request.function;
  });
}

Status ImportSlots::restore() {
  Status first_problem;
  for (const Replaced& replaced : slots_) {
    const auto& [request, slot, old_value] = replaced;
    Status written;
    if (const void* const now = read_slot(slot); now == request.function) {
      written = write_slot(slot, old_value);
    } else if (now != old_value) {
      // Somebody else has written the slot since. Our old value would cut that one off.
      written = {StatusCode::kFailedPrecondition,
                 fmt::format("{} of {} was replaced by somebody else since", request.symbol,
                             request.importer)};
    }
    if (first_problem.ok()) first_problem = std::move(written);
  }
  return first_problem;
}

}  // namespace gpushare::plugin
