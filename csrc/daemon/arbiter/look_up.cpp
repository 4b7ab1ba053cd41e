// Each look-up has a thread of its own. Look-ups are rare: one for each attempt to connect.
#include "csrc/daemon/arbiter/look_up.h"

#include <utility>

#include "csrc/base/process/start_thread.h"

namespace gpushare::daemon {

LookUp::~LookUp() {
  if (thread_.joinable()) thread_.join();
}

void LookUp::begin(const ipc::StreamAddress& address,
                   std::function<void(Result<ipc::StreamAddress>)> on_found) {
  if (thread_.joinable()) thread_.join();  // it has called back
  auto thread = start_thread("looking up a host", [this, address, on_found, turn = turn_++] {
    loop_.post([on_found, found = ipc::look_up(address, turn)] { on_found(found); });
  });
  if (thread) {
    thread_ = *std::move(thread);
  } else {
    loop_.post([on_found, error = thread.error()] { on_found(fail(error)); });
  }
}

}  // namespace gpushare::daemon
