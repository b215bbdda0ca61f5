"""Where logs are kept: the port, one module a back end, and `locate`, which finds one by URL.

Importing this package loads no back end.
"""
