"""Kernels to judge a judge with: sound ones that others published, and wrong ones of our own with sound twins."""
