// The secret that an arbiter and its hosts have in common, and numbers that nobody can guess.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace gpushare::daemon {

// The text of the file, without white space at its ends. The file must be a plain one of this
// process's user or of root, which no group and nobody else may read or write, and must hold 16 to
// 1024 bytes. errors: kIo, kFailedPrecondition, with what to do.
Result<std::string> read_token(const std::string& path);

// Draws a random number and returns its 32 digits. errors: kIo.
Result<std::string> make_nonce();

}  // namespace gpushare::daemon
