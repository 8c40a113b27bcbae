"""The engine held against functions that are broken on purpose."""
