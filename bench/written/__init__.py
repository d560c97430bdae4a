"""How well calls are read that a model wrote into its text: every form, many damages, prose that calls nothing, and the cost."""
