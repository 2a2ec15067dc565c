"""Checks of values."""
