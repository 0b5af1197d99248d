"""Calls of DVC, its stores and remotes, and checks of dvc.lock against receipts."""
