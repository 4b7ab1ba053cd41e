// A frame is a digest, and then its text. The digest is also of the number of the frame in its
// direction. So a frame that is changed, left out, sent twice, or sent back to where it came from
// does not open, and the connection ends.
//
// The key is a digest of another text than the proofs, so a proof tells nothing about the key. It
// is of the nonces of this connection, so frames of an earlier one do not open either.
#include "csrc/arbiter/seal.h"

#include <algorithm>

#include <fmt/format.h>

#include "csrc/base/sha256.h"

namespace gpushare::arbiter {
namespace {

// The length of a digest: 32 bytes of SHA-256, two digits each.
constexpr std::size_t kDigits = 64;

}  // namespace

Seal::Seal(const std::string& token, const Nonces& nonces, Side from)
    : key_(proof_of(from == Side::kHost ? "frames of host" : "frames of arbiter", token, nonces)) {}

std::string Seal::digest_of(std::string_view text) const {
  return to_hex(hmac_sha256(key_, fmt::format("{}:{}", count_, text)));
}

std::string Seal::close(std::string_view text) {
  std::string frame = digest_of(text);
  frame.append(text);
  ++count_;
  return frame;
}

// A frame that is shorter than a digest has an empty text, and fails as a wrong digest does.
Result<std::string> Seal::open(std::string_view frame) {
  const std::string_view text = frame.substr(std::min(frame.size(), kDigits));
  if (!is_equal_in_constant_time(frame.substr(0, kDigits), digest_of(text)))
    return fail(StatusCode::kProtocol, "a message that was changed on its way, or is none");
  ++count_;
  return std::string(text);
}

}  // namespace gpushare::arbiter
