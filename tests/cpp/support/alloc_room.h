// A room source as the tests need it: grants what is asked while its stock lasts.
#pragma once

#include <functional>
#include <vector>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/allocator/room_source.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::testing {

class StockedRoom final : public alloc::RoomSource {
 public:
  // `allocator` must outlive it.
  StockedRoom(alloc::CachingAllocator& allocator, Bytes initial_stock)
      : stock(initial_stock), allocator_(allocator) {}

  Status grow(const alloc::RoomRequest& request) override {
    const Bytes bytes = request.bytes;
    asked.push_back(bytes);
    liked.push_back(request.like);
    if (bytes > stock) return {StatusCode::kOutOfMemory, "the stock is empty"};
    stock -= bytes;
    allocator_.raise_room(allocator_.room() + bytes);
    return {};
  }

  Bytes stock;
  std::vector<Bytes> asked, liked;

 private:
  alloc::CachingAllocator& allocator_;
};

}  // namespace gpushare::testing
