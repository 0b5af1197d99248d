"""Prompts: records of messages, their rendering, tokenisation, and the frozen manifest."""
