"""What other libraries expect of a session, over an activation."""
