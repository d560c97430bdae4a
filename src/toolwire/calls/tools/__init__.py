"""The tools of a request: their kinds, names and call ids, adapted to what a back end accepts and mapped back."""
