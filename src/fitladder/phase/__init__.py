"""One phase from the ask to its receipt: the order of things, without Prefect and without vLLM."""
