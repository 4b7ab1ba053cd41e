"""Traces of clusters and of this machine, read in the forms in which others publish them."""
