"""A program is watched while it runs: which custom gradients it goes through, on which calls, and for what."""
