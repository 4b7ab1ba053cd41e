// Names of errors, as driver and runtime say them.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace fakecuda {

struct ErrorText {
  CUresult error;
  const char* driver_name;
  const char* runtime_name;
  const char* meaning;
};

// For an error that the fake itself never gives: "unrecognized error code".
const ErrorText& text_of_error(CUresult error);

// 16 bytes, different for each device.
void write_uuid(char* bytes, int device);
void write_pci_bus_id(char* text, size_t size, int device);

}  // namespace fakecuda
