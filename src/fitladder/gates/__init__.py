"""Live gates, one module each: engine facts in, a GateRecord out, or GateRefused; order in all_gates.py."""
