"""A Function that is none of torch's: its words are its own."""


class Function:
    """Turns a text into another one, and feedback on the second into feedback on the first."""

    @staticmethod
    def forward(ctx, text):
        """Write the second text."""

    @staticmethod
    def backward(ctx, feedback):
        """Read the feedback."""
