"""Grains, as modules ask for them."""
