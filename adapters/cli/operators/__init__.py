"""``xcecli``: what operators type; each command one or a few calls of the controller's REST interface."""
