"""Child side of an engine process: vLLM and torch, and nothing else imports them."""
