"""Bundles: the files of one phase at one rung, written once, receipt last, believed only when verified."""
