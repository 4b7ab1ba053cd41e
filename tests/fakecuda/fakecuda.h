// The tests' side of the fake CUDA device: what a test may ask of it and make it do.
//
// The fake is a library, libcuda.so.1, that takes the place of the CUDA driver and, preloaded, of
// the CUDA runtime. "Device memory" is a file that processes share; kernels do not run
// (libfakecuda_ops runs PyTorch's operators with their CPU kernels on the same bytes).
// tests/fakecuda/README.md says what it is true to and what not.
//
// Use: dlsym these from libcuda.so.1, or link it. All may be called from any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKECUDA_PUBLIC __attribute__((visibility("default")))

// Bytes taken on the device by all processes, contexts included; those of killed ones are not.
FAKECUDA_PUBLIC uint64_t fakecuda_used(int device);
// The same of one process: what it holds by handle, mapping or allocation, and its context. Memory
// that two processes hold counts for both of them here, but once in fakecuda_used().
FAKECUDA_PUBLIC uint64_t fakecuda_used_by(int device, int pid);
// The processes with a context on the device: their ids and bytes, at most `size` of each. Returns
// how many there are.
FAKECUDA_PUBLIC int fakecuda_processes(int device, int* pids, uint64_t* bytes, int size);
FAKECUDA_PUBLIC uint64_t fakecuda_capacity(void);
FAKECUDA_PUBLIC int fakecuda_num_devices(void);
FAKECUDA_PUBLIC int fakecuda_driver_version(void);

// Makes the n-th call from now (1: the next one) of this driver or runtime function fail with this
// CUresult or cudaError_t, with nothing done. A name stands for all its versions: cuMemGetInfo is
// cuMemGetInfo_v2 as well. n = 0 takes it back. A negative error: the process gets that signal.
FAKECUDA_PUBLIC void fakecuda_fail(const char* function, long nth, int error);
// How often the function was called, failed calls included, since the start or
// fakecuda_reset_calls().
FAKECUDA_PUBLIC long fakecuda_calls(const char* function);
FAKECUDA_PUBLIC void fakecuda_reset_calls(void);

// Late completion on (1) or off (0): see tests/fakecuda/work.h. Off completes what is pending.
FAKECUDA_PUBLIC void fakecuda_set_late(int late);
// How many copies and kernels are not known to be complete.
FAKECUDA_PUBLIC int fakecuda_num_pending(void);

// The illegal accesses so far, a line each, into `text` (cut at `size`, always terminated; may be
// null with size 0). Returns how many there are.
FAKECUDA_PUBLIC int fakecuda_violations(char* text, size_t size);
FAKECUDA_PUBLIC void fakecuda_clear_violations(void);

struct fakecuda_range {
  const void* begin;
  size_t bytes;
};

// A kernel that the caller is about to run in place, as one on `stream` (a cudaStream_t): checks
// that its ranges are accessible and ordered behind what is pending, and marks them pending. Pinned
// host memory is accessible. Returns 0, or cudaErrorIllegalAddress after an entry in the list of
// violations. After 0, the same thread calls fakecuda_kernel_end() when the kernel has run; in
// between it calls no CUDA function. Other threads wait for the end where they would wait for the
// kernel.
FAKECUDA_PUBLIC int fakecuda_kernel_begin(void* stream,
                                          const char* name,
                                          const struct fakecuda_range* reads,
                                          size_t num_reads,
                                          const struct fakecuda_range* writes,
                                          size_t num_writes);
FAKECUDA_PUBLIC void fakecuda_kernel_end(void);

#ifdef __cplusplus
}
#endif
