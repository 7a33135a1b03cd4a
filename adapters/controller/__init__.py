"""The controller at work: embedded in a program, or as a service over REST."""
