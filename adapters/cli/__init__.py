"""The command line: one file a command, one table of exit codes."""
