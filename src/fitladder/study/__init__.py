"""Throughput studies: what do width, graph coverage, pool and admission cost, each by itself?"""
