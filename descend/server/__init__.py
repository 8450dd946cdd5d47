"""A trained model as a service: OpenAI's routes for what writes and embeds, one typed route for everything else.

    gate.py        who may enter: host, key, size of the body, nobody new while the server ends
    app.py         routes, health, metrics, the page of the interface         server.py    the socket and its end
    batching.py    one thread writes for many: requests join and leave between two steps of the decoder

Nothing here predicts: `inference` answers, as it does for the command line, and the same numbers come out.
"""
