"""`python -m gradspec`: the command line, where the script `gradspec` is not on the path."""

from gradspec.cli import main

main(prog_name="gradspec")
