"""What is registered, and the arithmetic that gates and planner share."""
