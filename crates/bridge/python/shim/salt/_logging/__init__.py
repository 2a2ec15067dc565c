"""What log handlers import."""
