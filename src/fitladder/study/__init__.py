"""Throughput studies: the cost of batch width, graph coverage, KV pool and admission, each by itself.

plan: the study file. run, process, child, messages, request, warmup: how cells are measured. measurements:
what is written while a study runs. predict, statistics, results, table, summary: what follows from it.
bundle: receipt and verification. checkout: a study of this checkout, on its device.
"""
