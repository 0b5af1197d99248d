"""Charts as functions from plain data to SVG text, with words and a table behind each."""
