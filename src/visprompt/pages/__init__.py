"""What a notebook calls to show something: parameters, the page, chapters, plots and diagrams."""
