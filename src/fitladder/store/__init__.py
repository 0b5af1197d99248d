"""Artifact roots: holding one, write order, catalog chain, verification. The only writer of a root."""
