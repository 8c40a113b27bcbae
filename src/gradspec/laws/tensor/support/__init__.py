"""What laws of functions on tensors share."""
