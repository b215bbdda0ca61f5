"""Keeping a harness alive: pure plans of what to do next, one small edge to processes, and the supervisor between."""
