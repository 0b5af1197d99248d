"""Domains: what a task, a prompt, an answer and a grade are."""
