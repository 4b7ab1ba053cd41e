"""What `gpushare exporter` serves. Only `collector.py` and `server.py` need prometheus_client."""
