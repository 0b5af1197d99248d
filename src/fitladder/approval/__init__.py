"""Who allowed what, once: GO statements, their signatures and the append-only record of them."""
