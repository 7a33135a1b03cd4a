"""What is true and what may happen. No I/O, no clock, no randomness of its own."""
