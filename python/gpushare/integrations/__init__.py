"""What gpushare does inside other libraries; docs/integrations.md says which of them need it.

Each module here but ``ray`` and ``ray_nodes`` imports its library, so none of those is imported
before a program asks for it by name.
"""
