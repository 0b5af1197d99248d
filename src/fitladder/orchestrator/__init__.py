"""What the Prefect server says and is told, over REST: no prefect import, so that any laptop can ask."""
