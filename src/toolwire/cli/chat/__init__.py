"""`toolwire chat`: an agent in the terminal."""
