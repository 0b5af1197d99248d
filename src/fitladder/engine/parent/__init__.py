"""Parent side of an engine process: its arguments, its start, its events and its end."""
