"""The coordinator as a service of the machine: what ``gpushare admin`` installs and removes.

Nothing here is needed by a job. ``unit`` and ``settings_file`` are the texts, ``program`` looks
whether the service can run the daemon, ``files`` writes and removes without losing what somebody
has changed by hand, and ``service`` puts these in order.
"""
