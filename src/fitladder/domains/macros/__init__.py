"""Macro domain: programs on lists of integers, macro libraries, and paired tasks made from a seed.

primitives, program, library: what a program is. tasks, files: a task set on disk. records, wording: its
prompts. seeded_stream, depth, mining, generate, train, taskset: how a task set is made.
"""
