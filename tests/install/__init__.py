"""Attacks on a coordinator that several users share, by a user who may use it."""
