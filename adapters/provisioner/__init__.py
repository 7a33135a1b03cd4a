"""The provisioner daemon: the engine's state machine between a controller and providers."""
