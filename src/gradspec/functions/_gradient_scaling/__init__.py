"""What GradFactor and GradMultiply share: the identity whose gradient is scaled, its cases and its differences."""
