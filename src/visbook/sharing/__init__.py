"""Records that others send, and how they are checked before the book shows them."""
