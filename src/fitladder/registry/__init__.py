"""Registration: params.yaml to experiments, the binding, inputs by hash, follow-ups."""
