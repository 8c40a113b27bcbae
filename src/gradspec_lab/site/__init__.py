"""The versions of the site, and the documentation of published projects built with our extension."""
