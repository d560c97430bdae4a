"""Finding tools by a question: words of a definition, a BM25 index, and the choice of the tools that a model gets."""
