"""Model histories in the request forms of the providers.

Each takes the messages of a `ModelHistory("valid")`, with or without further ones behind them, and answers plain
builtins that fit the published types of the provider's own Python package. They are deterministic and depend only on
what comes before, so that a longer history begins with the same bytes and a provider's prompt cache stays good.
"""
