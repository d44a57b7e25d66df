"""Advice on own data: kinds of use, candidate orders, times and what they say, and data that check it."""
