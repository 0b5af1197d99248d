"""The macro domain: what programs, macros and tasks are, and how they are made from a seed."""
