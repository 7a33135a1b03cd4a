"""What real licence servers see in use: FlexNet, any command that prints JSON, recorded answers."""
