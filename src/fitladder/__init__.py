"""Preregistered long-context inference experiments on vLLM that cannot be quietly bent."""

__all__ = ["__version__"]

__version__ = "0.1.0"
