"""The use cases as state machines: messages in, effects out, no I/O."""
