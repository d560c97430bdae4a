"""Messages of a run as the events of one or several answers."""
