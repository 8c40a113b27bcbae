"""What the kills stand on."""

LAWS = ("vjp",)
