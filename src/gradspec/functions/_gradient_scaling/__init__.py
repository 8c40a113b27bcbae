"""The shared parts of GradFactor and GradMultiply: an identity with a scaled gradient, cases, differences."""
