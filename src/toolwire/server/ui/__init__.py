"""The inspector: its page, its login and its API. `/ui/` serves to the owner alone what the gateway has recorded."""
