"""Models of the files and messages that others rely on."""
