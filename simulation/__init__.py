"""Simulate supervisors and the system under them: one thread, virtual time, every race a choice of the seed."""
