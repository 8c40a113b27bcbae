"""The directives and the role of the extension, one file each."""
