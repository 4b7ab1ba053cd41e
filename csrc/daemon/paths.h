// Where things are: the socket and its neighbours, and the folder they stand in.
//
// Beside SOCKET stand SOCKET.lock (the kernel lock of the one coordinator; never deleted),
// SOCKET.jobs (see state_file.h) and the log. The default folder is checked to be ours, because in
// /tmp anybody could have made it first.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::daemon {

// $XDG_RUNTIME_DIR/gpushare/sock if that variable names a folder of ours, else
// /tmp/gpushare-UID/sock.
std::string default_socket_path();
// /etc/gpushare/config.toml, then the user's own. They need not exist.
std::vector<std::string> default_config_paths();
std::string folder_of(const std::string& path);

// Makes the socket's folder (0700, one level) if it is not there. A folder that anybody else may
// write to must be sticky; one under the default names must be a real folder of ours.
// errors: kIo, kFailedPrecondition naming owner and mode.
Status prepare_folder(const std::string& socket_path);

}  // namespace gpushare::daemon
