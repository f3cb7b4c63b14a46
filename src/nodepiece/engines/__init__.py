"""Tokenizing and embedding on Spark, with the tokens and vectors of one machine."""
