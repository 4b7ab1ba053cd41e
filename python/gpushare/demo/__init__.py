"""The demo: three small training jobs share one device, in scenes that can be compared.

The processes of the demo import torch; the one that directs them does not.
"""
