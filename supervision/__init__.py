"""Keeping a harness alive: what to do next is a pure function, processes are one small edge, the supervisor is between."""
