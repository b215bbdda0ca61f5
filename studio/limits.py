"""Bounds that the command line tells before it loads what keeps them."""

from __future__ import annotations

__all__ = ["LEAST_WIDTH", "MOST_BYTES", "MOST_WIDTH", "WIDTH"]

MOST_BYTES = 64 * 1024 * 1024
"""The largest exported page by default: a browser on a small machine opens it in seconds."""

LEAST_WIDTH, WIDTH, MOST_WIDTH = 320, 1200, 2400
"""How wide a timeline may be in pixels, and how wide it is unless somebody says otherwise."""
