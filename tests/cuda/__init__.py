"""Tests against the real CUDA build of PyTorch, on the fake device (tests/fakecuda)."""
