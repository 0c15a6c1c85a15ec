"""Clocks: methods and fast forms timed in turns, and the memory and time of one task."""
