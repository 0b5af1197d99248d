"""One module a DVC stage: declared inputs to declared outputs."""
