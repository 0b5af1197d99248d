"""Lineage: DVC carries bytes, receipts carry identity, and neither is believed without the other."""
