"""Two-stage budgeted thinking: seeds, requests, rows and their Parquet columns; independent of the engine."""
