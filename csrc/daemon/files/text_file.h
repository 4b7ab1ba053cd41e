// Small text files of the daemon's own: written by rename, so that a reader, or the next daemon,
// sees one version or the other. What somebody else has put under such a name is not believed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "csrc/base/status.h"

namespace gpushare::daemon {

// Readable by the daemon's user alone. One writer: the kernel lock (instance_lock.h) sees to it.
// errors: kIo; what was there before is there still.
Status write_text_file(const std::string& path, const std::string& text);

// Whether the open file is a plain one of ours or root's. errors: kFailedPrecondition naming `path`
// for another user's, and for what is no file (a folder, a pipe); kIo.
Status check_own_file(int fd, const std::string& path);

// Makes a file that only we can read, if it is not there, and checks it, before a library opens it
// with less care. errors: kIo, also for a link; and those of check_own_file().
Status make_own_file(const std::string& path);

// The file's text, at most `most` bytes of it. Empty result: there is no such file. errors: kIo,
// also for a link; and those of check_own_file().
Result<std::optional<std::string>> read_text_file(const std::string& path, std::size_t most);

}  // namespace gpushare::daemon
