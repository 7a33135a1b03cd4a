"""Event and aggregate bases, transition tables, stored names and digests."""
