"""One module a DVC stage: it reads its declared inputs, writes its declared outputs, and says one line."""
