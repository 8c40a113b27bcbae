"""The domain `gradspec`, and the records that a build reads."""
