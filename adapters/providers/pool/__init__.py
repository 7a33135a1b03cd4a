"""The reference licence pool: one durable file that several sites borrow from and give back to."""
