"""Tests on a GPU; DEVICE_SUITE_FAKE=1 runs what it can on the fake CUDA device."""
