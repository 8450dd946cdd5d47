"""The studio: one local web page for everything descend does.

    descend studio runs/

A run is a process and a folder, and the studio only looks at folders and starts processes: pages can be closed and
opened, and the studio itself ended and started again, while runs go on. Pages are written by the server with the
components of `web/`; a few ES modules (`static/`) follow events, send forms and draw what has to move.
"""
