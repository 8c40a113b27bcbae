"""What laws of text Functions share."""
