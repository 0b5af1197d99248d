"""Live gates, one module each: engine facts in, gate record out, or a refusal."""
