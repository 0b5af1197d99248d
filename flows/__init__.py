"""What happens, in order; a page each, no arithmetic."""
