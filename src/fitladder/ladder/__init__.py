"""The ladder: phase outcomes to the next authorised phase or the selection."""
