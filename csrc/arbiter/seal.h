// Signs the frames of one direction of a connection, so that nobody on the network can change, add,
// leave out or repeat one unnoticed.
//
// Each frame begins with a keyed digest of its number and its text. The key follows from the token
// and the nonces of both sides (handshake.h), so it is another one on each connection and in each
// direction. Both ends count frames from 0.
//
// What it does not do: it hides nothing. Whoever listens on the network can read the messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/arbiter/handshake.h"
#include "csrc/base/status.h"

namespace gpushare::arbiter {

class Seal {
 public:
  enum class Side : std::uint8_t { kHost, kArbiter };

  // For the frames that `from` sends.
  Seal(const std::string& token, const Nonces& nonces, Side from);

  // The next frame to be sent.
  std::string close(std::string_view text);
  // The text of the next frame that came. errors: kProtocol: it is not the one that was sent.
  Result<std::string> open(std::string_view frame);

 private:
  [[nodiscard]] std::string digest_of(std::string_view text) const;

  std::string key_;
  std::uint64_t count_ = 0;
};

}  // namespace gpushare::arbiter
