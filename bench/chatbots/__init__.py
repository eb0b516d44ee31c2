"""Chatbots that nobody here wrote, each as its makers' documentation says to write it, and their examination.

`python -m bench.chatbots` makes each in a folder of its own, examines it, and notes what came out in results.json;
docs/peers/chatbots.md is made from that.
"""
