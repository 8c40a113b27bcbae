"""Measurements on a CUDA device, in one call: the laws, benchmarks, and waits of the host for the device."""
