"""One scheduling session: allocation, plans, pend reasons, trace."""
