// How a host and the arbiter prove to each other that they know one token, without sending it.
//
// Each side draws a nonce, and answers with a keyed digest of both nonces. The digests of the two
// sides begin differently, so that neither can be sent back as the other. A recorded proof is of no
// use later, since the nonces are new each time.
//
// What follows on the connection is signed (seal.h), and not encrypted.
#pragma once

#include <string>

namespace gpushare::arbiter {

struct Nonces {
  std::string arbiter;
  std::string host;
};

// Returns a digest of the purpose and the nonces, which nobody can make without the token.
std::string proof_of(const char* purpose, const std::string& token, const Nonces& nonces);
std::string proof_of_host(const std::string& token, const Nonces& nonces);
std::string proof_of_arbiter(const std::string& token, const Nonces& nonces);

}  // namespace gpushare::arbiter
