"""Verified state of an experiment: bundles, recomputed audits and ladder history as typed values."""
