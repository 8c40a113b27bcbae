"""What is measured on a CUDA device in one call: the laws, benchmarks, and whether the host waits for the device."""
