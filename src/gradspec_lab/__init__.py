"""The laboratory: what shows that gradspec itself can be trusted, measured on this repository and never shipped."""
