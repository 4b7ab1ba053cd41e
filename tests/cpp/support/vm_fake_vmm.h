// A small real Vmm over ordinary memory that keeps its contract and watches that others do.
//
// It counts calls, fails the calls it is told to, poisons bytes that lose their backing, and aborts
// where a precondition is broken (backing what is backed, copying what is not frozen). Memory aside
// lies in the second half of a reservation. It knows nothing of
// smaps or huge pages: that is HostVmm's test.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {

inline constexpr std::byte kPoison{0xDB};

class FakeVmm final : public vm::Vmm {
 public:
  FakeVmm() = default;
  ~FakeVmm() override;
  FakeVmm(const FakeVmm&) = delete;
  FakeVmm& operator=(const FakeVmm&) = delete;

  Result<vm::AddressRange> reserve(Bytes size) override;
  Status back(std::byte* address, Bytes size) override;
  Status unback(std::byte* address, Bytes size) override;
  Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) override;
  Status unmap_shared(std::byte* address, Bytes size) override;
  Status forbid_access(std::byte* address, Bytes size) override;
  Status allow_access(std::byte* address, Bytes size) override;
  Status make_private(std::byte* address, Bytes size) override;
  Status freeze(std::byte* address, Bytes size) override;
  void thaw(std::byte* address, Bytes size) override;
  Status unback_showing(std::byte* address, Bytes size, const vm::HostPlace& place) override;
  Status show(std::byte* address, Bytes size, const vm::HostPlace& place) override;
  [[nodiscard]] bool traps_writers() const override { return traps_writers_; }
  [[nodiscard]] bool shows(const std::byte* address, Bytes size) const override;
  Status hide(std::byte* address, Bytes size) override;
  Status back_aside(std::byte* address, Bytes size) override;
  [[nodiscard]] std::byte* aside(std::byte* address) override;
  Status bring_in(std::byte* address, Bytes size) override;
  void unback_aside(std::byte* address, Bytes size) override;
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override;
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override;

  // The `nth` of the following calls (1 is the next) fails, and so do the `more` after it: backing
  // with kOutOfMemory, the others with kIo.
  void fail_at(int nth, int more = 0);
  void fail_never();
  // Called by each copy before it begins, on the copying thread: something happens meanwhile.
  void set_before_copy(std::function<void()> hook);
  // From now on memory may not move while it is used, as on a GPU.
  void trap_no_writers() { traps_writers_ = false; }
  // Backing beyond it fails, as on a device that others fill too.
  void set_device_size(Bytes size);

  [[nodiscard]] int num_calls() const;  // that can fail, so far
  [[nodiscard]] int num_unbacks() const;
  [[nodiscard]] int num_backs() const;
  [[nodiscard]] Bytes backed() const;  // mapped from files or not
  [[nodiscard]] Bytes shared() const;  // mapped from files
  [[nodiscard]] Bytes forbidden() const;
  [[nodiscard]] Bytes most_backed() const;
  [[nodiscard]] bool is_backed(const void* address, Bytes size) const;
  // Backed, or showing bytes of the host tier.
  [[nodiscard]] bool is_reachable(const void* address, Bytes size) const;
  [[nodiscard]] Bytes frozen() const;
  [[nodiscard]] Bytes shown() const;

 private:
  using Chunks = std::set<const std::byte*>;

  void unreserve(std::byte* base, Bytes size) override;
  bool must_fail() GS_REQUIRES(mu_);
  void run_hook() GS_EXCLUDES(mu_);
  template <typename Holds>
  static bool all_chunks(const void* address, Bytes size, Holds holds);
  Status add_backing(std::byte* address, Bytes size) GS_REQUIRES(mu_);
  void remove_backing(std::byte* address, Bytes size) GS_REQUIRES(mu_);
  void map_place(std::byte* address, Bytes size, const vm::HostPlace& place) GS_REQUIRES(mu_);
  void stop_showing(std::byte* address, Bytes size) GS_REQUIRES(mu_);
  [[nodiscard]] std::byte* locate_aside(std::byte* address) const GS_REQUIRES(mu_);
  void check_backed(const std::byte* address, Bytes size, bool expected) const GS_REQUIRES(mu_);

  bool traps_writers_ = true;

  struct Shared {
    int file = -1;
    Bytes offset;
  };
  // Ordinary memory, poisoned, under the range again; what was mapped from files is forgotten.
  void cover(std::byte* address, Bytes size) GS_REQUIRES(mu_);
  void release_files(const std::byte* address, Bytes size) GS_REQUIRES(mu_);
  Status set_access(std::byte* address, Bytes size, bool is_allowed) GS_EXCLUDES(mu_);
  void check_shared(const std::byte* address, Bytes size, bool expected) const GS_REQUIRES(mu_);

  mutable Mutex mu_;
  std::map<const std::byte*, Shared> shared_ GS_GUARDED_BY(mu_);  // of chunks_
  std::function<void()> before_copy_ GS_GUARDED_BY(mu_);
  std::map<const std::byte*, Bytes> reserved_ GS_GUARDED_BY(mu_);  // sizes by base
  Chunks chunks_ GS_GUARDED_BY(mu_);  // addresses of backed chunks, aside ones too
  Chunks frozen_ GS_GUARDED_BY(mu_), shown_ GS_GUARDED_BY(mu_);
  Chunks forbidden_ GS_GUARDED_BY(mu_);  // of shared_
  Bytes most_backed_ GS_GUARDED_BY(mu_);
  Bytes device_size_ GS_GUARDED_BY(mu_) = Bytes{INT64_MAX};
  int num_calls_ GS_GUARDED_BY(mu_) = 0;
  int num_backs_ GS_GUARDED_BY(mu_) = 0, num_unbacks_ GS_GUARDED_BY(mu_) = 0;
  int first_failing_ GS_GUARDED_BY(mu_) = 0, last_failing_ GS_GUARDED_BY(mu_) = 0;
};

}  // namespace gpushare::testing
