// The tests of the fake device. All processes of a run share one device file.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/child.h"
#include "tests/fakecuda/tests/device.h"

namespace {

// A file without a name once all have opened it is out of reach for the children: they are given it
// by the parent's descriptor.
void set_up_device() {
  std::string name = testing::TempDir() + "fakecuda-XXXXXX";
  const int fd = mkstemp(name.data());
  unlink(name.c_str());
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
  setenv("FAKECUDA_DEVICE_FILE", path.c_str(), 1);
  setenv("FAKECUDA_CAPACITY", std::to_string(fakecuda_tests::kCapacity).c_str(), 1);
  setenv("FAKECUDA_CONTEXT_BYTES", std::to_string(fakecuda_tests::kContext).c_str(), 1);
  setenv("FAKECUDA_DEVICES", "2", 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (fakecuda_tests::run_role(argc, argv)) return testing::Test::HasFailure() ? 1 : 0;
  set_up_device();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
