"""Child side of an engine process: the only package that imports vllm; it runs in `.venv-vllm`."""
