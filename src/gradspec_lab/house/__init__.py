"""The rooms of the package and the imports between them."""
