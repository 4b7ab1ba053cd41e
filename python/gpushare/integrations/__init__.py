"""What gpushare does inside other libraries; docs/integrations.md says which of them need it.

Each module here imports its library, so none is imported before a program asks for it by name.
"""
