"""Parent side of an engine process: arguments, start, events, collection, end."""
