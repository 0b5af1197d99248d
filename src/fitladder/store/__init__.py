"""Artifact roots: claim, write order, catalog chain, verification. The only writer of a root."""
