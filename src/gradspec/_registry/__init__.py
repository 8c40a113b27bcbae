"""From words on a command line to specs and laws."""
