"""Pages of experiments, studies and token files, as HTML and Markdown."""
