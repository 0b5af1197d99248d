"""What the answers were worth: parsed, chosen by visible examples, and only then graded."""
