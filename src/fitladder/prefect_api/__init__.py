"""The Prefect server over REST: deployments, runs, workers and conflicts; no import of prefect."""
