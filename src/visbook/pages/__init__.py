"""What a notebook calls to show something: parameters, the page, plots and diagrams."""
