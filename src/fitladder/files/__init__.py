"""Files: reading, writing, locking and digesting one file safely; nothing here knows what the bytes mean."""
