"""What laws of modules share."""
