"""What the pages of a chapter draw and judge, a module a page or a question."""
