"""A function without a spec: probed, likened to known forms, and given a spec that its author can edit."""
