"""Recipes, and the one loop that fits any method to any task."""
