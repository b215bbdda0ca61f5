"""Values and pure functions: what a session log is, and how it may change.

Nothing here does I/O, starts a thread, reads a clock or draws a random id: time and ids are arguments.
"""
