"""The command line: one file per command, everything heavy imported inside it."""
