"""What is written beside and around pages: Markdown twins, mathematics, assets."""
