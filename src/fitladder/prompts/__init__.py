"""From tasks to token ids: wording, records, rendering, tokenising, and the frozen manifest."""
