"""Fixtures that several test files share."""

from __future__ import annotations

from cli_helpers import call, recipes

__all__ = ["call", "recipes"]
