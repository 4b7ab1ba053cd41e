// Finding the fake's functions by name, as cuGetProcAddress does.
#pragma once

namespace fakecuda {

// The newest version that the fake has of a driver function. Null: none.
void* entry_point(const char* name);

}  // namespace fakecuda
