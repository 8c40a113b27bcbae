"""What the extension does to pages that autodoc makes."""
