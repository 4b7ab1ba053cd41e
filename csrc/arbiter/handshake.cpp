// What a digest is for is part of its text, so a proof of one side is none of the other side.
//
// A nonce is a text of the peer's choice, so its length stands before it: two pairs of nonces never
// give one text.
#include "csrc/arbiter/handshake.h"

#include <fmt/format.h>

#include "csrc/base/sha256.h"

namespace gpushare::arbiter {

std::string proof_of(const char* purpose, const std::string& token, const Nonces& nonces) {
  return to_hex(hmac_sha256(
      token, fmt::format("gpushare arbiter 1 {} {}:{} {}:{}", purpose, nonces.arbiter.size(),
                         nonces.arbiter, nonces.host.size(), nonces.host)));
}

std::string proof_of_host(const std::string& token, const Nonces& nonces) {
  return proof_of("host", token, nonces);
}

std::string proof_of_arbiter(const std::string& token, const Nonces& nonces) {
  return proof_of("arbiter", token, nonces);
}

}  // namespace gpushare::arbiter
