"""Content-blind audit of token ids: periodicity, termination, and any file of token lists."""
