"""The commands of `python -m gradspec_lab`."""
