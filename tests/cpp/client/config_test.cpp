#include "csrc/client/config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

ClientConfig good() {
  ClientConfig config;
  config.socket_paths = {"/run/gpushare/sock"};
  return config;
}

void expect_refused(const ClientConfig& config, const std::string& text) {
  const Status status = validate(config);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(text));
}

TEST(ClientConfig, TakesTheDefaultsWithASocket) { EXPECT_TRUE(validate(good()).ok()); }

TEST(ClientConfig, NamesTheFieldThatIsWrong) {
  ClientConfig config = good();
  config.socket_paths.clear();
  expect_refused(config, "socket_paths: empty");
  config = good();
  config.socket_paths = {"sock"};
  expect_refused(config, "must start with /");
  config.socket_paths = {"/" + std::string(107, 'x')};
  expect_refused(config, "must be 1 to 107");
  config.socket_paths = {"/" + std::string(106, 'x')};
  EXPECT_TRUE(validate(config).ok());
  config = good();
  config.device = "cuda:0";
  expect_refused(config, "device");
  config = good();
  config.connect_timeout = Nanos{0};
  expect_refused(config, "connect_timeout");
  config.connect_timeout = seconds(601);
  expect_refused(config, "at most 600 s");
  config = good();
  config.idle_rule = Nanos{-1};
  expect_refused(config, "idle_rule");
  config = good();
  config.idle_spill = Nanos{0};
  expect_refused(config, "idle_spill");
  config = good();
  config.unmanaged_room = Bytes{0};
  expect_refused(config, "unmanaged_room");
}

}  // namespace
}  // namespace gpushare::client
