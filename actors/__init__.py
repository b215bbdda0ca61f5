"""Who owns a log: the activation actor, the system that finds and stops them, and the session handle."""
