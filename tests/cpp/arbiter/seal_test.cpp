// What the other end takes, and what it does not.
#include "csrc/arbiter/seal.h"

#include <string>

#include <gtest/gtest.h>

namespace gpushare::arbiter {
namespace {

const Nonces kNonces{.arbiter = "a", .host = "b"};

Seal of_host() { return {"token", kNonces, Seal::Side::kHost}; }

TEST(Seal, FramesComeOutInTheirOrder) {
  Seal here = of_host();
  Seal there = of_host();
  for (const char* text : {"one", "two", "one"})
    EXPECT_EQ(there.open(here.close(text)).value_or("refused"), text);
}

TEST(Seal, AFrameThatWasChangedIsRefused) {
  Seal here = of_host();
  const std::string frame = here.close("stop_at 10");
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::string changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(of_host().open(changed).has_value()) << i;
  }
  for (const std::string& text : {std::string(), std::string("x"), frame.substr(1), frame + "0"})
    EXPECT_FALSE(of_host().open(text).has_value()) << text;
  EXPECT_TRUE(of_host().open(frame).has_value());
}

TEST(Seal, AFrameThatIsRepeatedOrLeftOutIsRefused) {
  Seal here = of_host();
  const std::string first = here.close("x");
  const std::string second = here.close("x");
  Seal there = of_host();
  EXPECT_FALSE(there.open(second).has_value()) << "the first is missing";
  EXPECT_TRUE(there.open(first).has_value());
  EXPECT_FALSE(there.open(first).has_value()) << "it came twice";
  EXPECT_TRUE(there.open(second).has_value());
}

TEST(Seal, AFrameIsOfOneTokenOneConnectionAndOneDirection) {
  const std::string frame = of_host().close("x");
  EXPECT_FALSE(Seal("other", kNonces, Seal::Side::kHost).open(frame).has_value());
  EXPECT_FALSE(Seal("token", kNonces, Seal::Side::kArbiter).open(frame).has_value());
  const Nonces later{.arbiter = "c", .host = "b"};
  EXPECT_FALSE(Seal("token", later, Seal::Side::kHost).open(frame).has_value());
}

}  // namespace
}  // namespace gpushare::arbiter
