// Streams that are being captured say so, and what CUDA refuses meanwhile is refused.
#include <thread>

#include <gtest/gtest.h>

#include "tests/fakecuda/tests/device.h"

namespace fakecuda_tests {
namespace {

class Capture : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    captured_ = stream();
    ASSERT_EQ(cuStreamBeginCapture(captured_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  }
  void TearDown() override {
    cuStreamEndCapture(captured_, &graph_);
    Device::TearDown();
  }
  static CUstreamCaptureStatus status_of(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    return status;
  }

  CUstream captured_ = nullptr;
  CUgraph graph_ = nullptr;
};

TEST_F(Capture, IsSeenUntilItsEnd) {
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(status_of(stream()), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuStreamBeginCapture(captured_, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamEndCapture(captured_, &graph_), CUDA_SUCCESS);
  EXPECT_NE(graph_, nullptr);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuStreamEndCapture(captured_, &graph_), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, IsBrokenByWaitingForTheStream) {
  EXPECT_EQ(cuStreamSynchronize(captured_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(captured_, &graph_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph_, nullptr);
}

TEST_F(Capture, IsBrokenByWaitingForTheDeviceAlsoInRelaxedMode) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST_F(Capture, IsBrokenByUnsafeCallsUnlessTheThreadIsRelaxed) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  CUdeviceptr plain = 0;
  EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(plain), CUDA_SUCCESS);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuMemAlloc(&plain, kChunk), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST_F(Capture, TakesInStreamsThatWaitForIt) {
  CUstream other = stream();
  CUevent fork = event();
  ASSERT_EQ(cuEventRecord(fork, captured_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuStreamEndCapture(other, &graph_), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(captured_, &graph_), CUDA_SUCCESS);
  EXPECT_EQ(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Capture, ItsEventsAreNotAskedForFromOutside) {
  CUevent inside = event();
  ASSERT_EQ(cuEventRecord(inside, captured_), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(inside), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
}

TEST_F(Capture, EndsInTheThreadThatBeganIt) {
  std::thread([&] {
    use_device();
    EXPECT_EQ(cuStreamEndCapture(captured_, &graph_), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(status_of(captured_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

TEST_F(Capture, TheDefaultStreamHasNone) {
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

}  // namespace
}  // namespace fakecuda_tests
