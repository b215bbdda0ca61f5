"""Projections: pure, incremental reducers over a log, the same one for live events and for a rebuild (I7)."""
