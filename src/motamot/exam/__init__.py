"""Examining a chatbot from outside: how a URL is asked, and a visitor in a real browser."""
