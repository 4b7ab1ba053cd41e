// Written out after FIPS 180-4, chapters 5 and 6. The names are those of the standard.
//
// It is here, and not from a library, because gpushared is to start on machines that have none of
// OpenSSL: the wheel brings what it needs. The test has the examples of the standard, and of RFC
// 4231 for HMAC. Its speed does not matter: a frame of an arbiter has some hundred bytes.
#include "csrc/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace gpushare {
namespace {

constexpr std::size_t kBlock = 64;

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t word_at(std::string_view block, std::size_t index) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i)
    word = word << 8 | static_cast<std::uint8_t>(block[4 * index + i]);
  return word;
}

// Chapter 6.2.2: one block of 64 bytes changes the state. The variables a to h are its eight words,
// and w is the block, expanded to a word for each round.
void add_block(State& state, std::string_view block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = word_at(block, i);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State change = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] += change[i];
}

std::string bytes_of(const Sha256& digest) { return {digest.begin(), digest.end()}; }

}  // namespace

// The text is padded by a one bit, zeros, and its length in bits as 64 bits, to whole blocks.
Sha256 sha256(std::string_view text) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(text);
  padded.push_back('\x80');
  padded.resize((padded.size() + 8 + kBlock - 1) / kBlock * kBlock - 8);
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<char>(bits >> shift & 0xff));
  for (std::size_t at = 0; at < padded.size(); at += kBlock)
    add_block(state, std::string_view(padded).substr(at, kBlock));
  Sha256 digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  return digest;
}

// RFC 2104. A key longer than a block is replaced by its digest.
Sha256 hmac_sha256(std::string_view key, std::string_view text) {
  std::string block = key.size() > kBlock ? bytes_of(sha256(key)) : std::string(key);
  block.resize(kBlock);
  const auto mixed = [&block](unsigned with) {
    std::string result = block;
    for (char& byte : result)
      byte = static_cast<char>(static_cast<std::uint8_t>(byte) ^ with);
    return result;
  };
  return sha256(mixed(0x5c) + bytes_of(sha256(mixed(0x36) + std::string(text))));
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 0xf]);
  }
  return text;
}

// A comparison that ends at the first difference would tell a stranger, by its time, how many
// characters of a guess are right.
bool is_equal_in_constant_time(std::string_view one, std::string_view other) {
  unsigned differ = one.size() == other.size() ? 0U : 1U;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    differ |= static_cast<unsigned>(one[i] ^ other[i]);
  return differ == 0;
}

}  // namespace gpushare
