"""The prompt of the simulator: commands in, answers out; no terminal, no file."""
