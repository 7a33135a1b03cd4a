"""What to ask of providers and what to give back: ``decide``, a pure function of one round's input."""
