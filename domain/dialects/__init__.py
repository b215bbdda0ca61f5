"""One module a harness: its records become drafts, and drafts are linked into events."""
