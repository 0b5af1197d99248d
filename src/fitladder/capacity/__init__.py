"""KV-cache capacity: blocks, pools, the KV rule, capture lists, admission, simulation and step time."""
