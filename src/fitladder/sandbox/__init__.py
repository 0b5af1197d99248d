"""Kernel and audit-hook seals that keep a process from text and hidden examples."""
