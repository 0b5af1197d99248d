"""The macro domain: programs, macros, libraries and tasks, and how they are made from a seed."""
