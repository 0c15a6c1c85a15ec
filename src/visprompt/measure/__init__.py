"""Measurements of a built model: operations, memory, time, attention and similarity."""
