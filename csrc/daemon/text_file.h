// Small text files of the daemon's own: written by rename, so that a reader, or the next daemon,
// sees one version or the other.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace gpushare::daemon {

// Readable by the daemon's user alone. One writer: the kernel lock (instance_lock.h) sees to it.
// errors: kIo; what was there before is there still.
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace gpushare::daemon
