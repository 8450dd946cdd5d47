"""Worked examples of the family embeddings-tokenizers."""
