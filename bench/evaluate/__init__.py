"""How many answers of a real model are right calls, at each guard level, with and without a grammar, and what that costs."""
