"""What fits, and when to admit it: predictions from integers, before any GPU is asked."""
