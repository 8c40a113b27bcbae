"""The variables by which a program is told that it is watched."""

#: Where to write, and which packages are asked about.
FOLDER, ONLY = "GRADSPEC_WATCH", "GRADSPEC_WATCH_ONLY"
#: The scopes that each audit asks about; empty: training, and what the program uses.
SCOPES = "GRADSPEC_WATCH_SCOPES"
#: After how many calls a function is audited; 0 is the end.
AT = "GRADSPEC_WATCH_AT"
