"""Output beside and around pages: Markdown twins, mathematics, assets."""
