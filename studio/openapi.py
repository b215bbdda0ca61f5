"""What the API offers, as an OpenAPI document."""

from __future__ import annotations

from incarnate.domain.codec import encode_json

__all__ = ["OPENAPI"]

OPENAPI = encode_json({"openapi": "3.1.0", "info": {"title": "incarnate studio", "version": "1"}, "paths": {}})
