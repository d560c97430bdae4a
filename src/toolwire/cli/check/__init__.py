"""`toolwire check`: tests an endpoint and reports which clients it works with."""
