"""Engine processes: the messages that the two sides exchange."""
