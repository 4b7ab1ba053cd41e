// The lease page as a hostile peer writes it. The input is a program, one letter an operation:
//
//   b e w u c f   the job's begin, end, want, give_up, start_close, finish_close
//   g a           the coordinator's grant of the next term, ask for the last one granted
//   s OFFSET(1) VALUE(8)   the peer scribbles over the page; OFFSET counts words of 8 bytes
//
// Nothing may abort; no operation may leave its arrow of the drawing; counters read are in bounds.
#include "csrc/wire/lease_page.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/wire/limits.h"

namespace gpushare::wire {
namespace {

using enum LeaseState;

class Machine {
 public:
  void run(std::span<const std::uint8_t> program) {
    initialise(page_, 1, {.job = JobId{1}});
    while (!program.empty()) {
      const char letter = static_cast<char>(program.front());
      program = program.subspan(1);
      if (letter == 's') {
        program = program.subspan(scribble(program));
      } else {
        step(letter);
      }
      check_usage();
    }
  }

 private:
  // Returns how many bytes of the program it took.
  std::size_t scribble(std::span<const std::uint8_t> program) {
    constexpr std::size_t kLength = 1 + sizeof(std::uint64_t);
    if (program.size() < kLength) return program.size();
    const std::size_t at = program.front() * sizeof(std::uint64_t);
    if (at + sizeof(std::uint64_t) <= sizeof(page_)) {
      auto* bytes = reinterpret_cast<unsigned char*>(&page_);
      std::memcpy(bytes + at, program.data() + 1, sizeof(std::uint64_t));
    }
    return kLength;
  }

  // `ok`: the operation says that it moved the word, which must then be an arrow of its own.
  void expect(bool ok, LeaseWord before, bool is_arrow, LeaseState to, Term term) const {
    const LeaseWord after = load(page_);
    GS_CHECK(ok == is_arrow, "{} moved: {}", name_of(before.state()), ok);
    if (ok) {
      GS_CHECK(after.state() == to && after.term() == term, "to {}", name_of(after.state()));
    } else {
      GS_CHECK(after == before, "{:#x} -> {:#x}", before.bits(), after.bits());
    }
  }

  void step(char letter) {
    const LeaseWord before = load(page_);
    const LeaseState from = before.state();
    const Term term = before.term();
    switch (letter) {
      case 'w': expect(want(page_), before, from == kIdle, kWanted, term); break;
      case 'u': expect(give_up(page_), before, from == kWanted, kIdle, term); break;
      case 'c': expect(start_close(page_), before, before.is_open(), kClosing, term); break;
      case 'b': {
        const bool ok = try_begin(page_) == BeginResult::kEntered;
        expect(ok, before, before.is_open(), kOpenBusy, term);
        break;
      }
      case 'e': {
        const bool ok = try_end(page_) != EndResult::kNotOpen;
        const LeaseState to = before.is_asked() ? kClosing : kOpenGap;
        expect(ok, before, from == kOpenBusy, to, term);
        break;
      }
      case 'f': {
        finish_close(page_);
        expect(from == kClosing, before, from == kClosing, kIdle, term);
        break;
      }
      default: step_coordinator(letter, before); break;
    }
  }

  void step_coordinator(char letter, LeaseWord before) {
    const LeaseState from = before.state();
    if (letter == 'g') {
      const Term next{granted_.value + 1};
      const bool ok = grant(page_, next);
      expect(ok, before, from == kWanted, kOpenBusy, next);
      if (ok) granted_ = next;
    } else if (letter == 'a') {
      const bool ok = ask(page_, granted_) != AskResult::kStale;
      const LeaseState to = from == kOpenGap ? kClosing : kOpenBusy;
      expect(ok, before, before.is_open() && before.term() == granted_, to, granted_);
      GS_CHECK(!ok || load(page_).is_asked(), "the ask left no bit");
    }
  }

  void check_usage() const {
    const Usage usage = read_usage(page_);
    for (const std::int64_t amount :
         {usage.busy.value(), usage.stall.value(), usage.changed_at.value(), usage.live.value(),
          usage.need.value(), usage.resident.value(), usage.spilled.value()}) {
      GS_CHECK(amount >= 0 && amount <= kMaxAmount, "{}", amount);
    }
    static_cast<void>(is_valid(page_));
  }

  LeasePage page_{};
  Term granted_;
};

}  // namespace
}  // namespace gpushare::wire

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  // A finish_close out of turn is logged; here it is the daily bread.
  gpushare::log::configure(gpushare::log::Level::kOff, "fuzz");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gpushare::wire::Machine().run({data, size});
  return 0;
}
