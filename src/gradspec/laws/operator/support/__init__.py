"""What the laws of operators share."""
