"""Published implementations beside ours."""
