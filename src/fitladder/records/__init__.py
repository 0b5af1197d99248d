"""Frozen models of everything that lies on disk or crosses a process; no I/O."""
