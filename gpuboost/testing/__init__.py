"""Contracts that a piece of your own can be held to, as test suites to subclass. They run under pytest.

The built-in pieces pass the same suites.
"""
