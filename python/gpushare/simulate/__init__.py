"""Traces of whole jobs on virtual time: made, run through the coordinator's code, shown.

The simulation itself is csrc/sim; docs/simulator.md describes the trace and the report.
"""
