"""Model folders for the engine: converted from GGUF, or a configuration without weights."""
