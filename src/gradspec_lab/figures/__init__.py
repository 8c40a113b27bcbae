"""The numbers behind the curves and maps of the documentation."""
