"""Domains: tasks, prompts and programs of an experiment. `macros` is the only one."""
