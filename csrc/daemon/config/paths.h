// Places of files: the socket and its neighbours, and the folder they stand in.
//
// Beside SOCKET stand SOCKET.lock (the kernel lock of the one coordinator; never deleted),
// SOCKET.jobs (see state_file.h), SOCKET.profiles (see profile_file.h) and the log. The default
// folder is checked to be ours, because in /tmp anybody could have made it first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::daemon {

// "sock" for cpu, "GPU-....sock" for a CUDA device that has a coordinator of its own, and
// "cuda.sock" for wire::kAllCuda, where one coordinator has several. pre: wire::is_device_name, or
// that.
std::string socket_name(std::string_view device);
// $XDG_RUNTIME_DIR/gpushare/NAME if that variable names a folder of ours, else
// /tmp/gpushare-UID/NAME; NAME is the device's socket_name.
std::string default_socket_path(std::string_view device);
// The log of a coordinator in the background: beside its socket; that of a CUDA device has the
// device's name.
std::string log_path_of(const std::string& socket_path);
// Where accounts are kept if nobody says so: $XDG_STATE_HOME/gpushare/accounts, or the same in
// ~/.local/state. "" without a home.
std::string default_accounts_folder();
// /etc/gpushare/config.toml, then the user's own. They need not exist.
std::vector<std::string> default_config_paths();

// Makes the socket's folder (one level) if it is not there, for those whom `socket_mode` lets in to
// enter; it then belongs to `socket_group`. It must be a real folder of ours or root's that not
// everybody may write to. errors: kIo, kFailedPrecondition naming owner and mode.
Status prepare_folder(const std::string& socket_path,
                      unsigned socket_mode = 0600,
                      std::optional<std::uint32_t> socket_group = std::nullopt);

}  // namespace gpushare::daemon
