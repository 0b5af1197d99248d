"""Signed export of one experiment: an in-toto statement in a DSSE envelope, and its offline check."""
