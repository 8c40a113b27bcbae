"""A campaign: the custom gradients of packages that people use, each seen and judged in a program that calls it."""
