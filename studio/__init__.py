"""The page where people watch sessions live: a server, its page, the timeline and the picture to send."""
