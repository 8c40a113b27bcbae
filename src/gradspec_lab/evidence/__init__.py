"""The committed records: their renewal, a sample measured again, and the counts on the page about trust."""
