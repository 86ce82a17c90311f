"""A web server in the box that serves a state of the apt repository; the states are folders in $PACKAGES."""

import functools
import http.server
import os
import pathlib
import shutil
import threading

FILES = pathlib.Path(os.environ["PACKAGES"])
SITE = pathlib.Path("/run/site")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def listen():
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def only_this_source():
    pathlib.Path("/etc/apt/sources.list").unlink(missing_ok=True)
    for file in pathlib.Path("/etc/apt/sources.list.d").iterdir():
        file.unlink()
    # What the owner is asked otherwise.
    pathlib.Path("/etc/apt/apt.conf.d/99test").write_text('APT::Get::Assume-Yes "true";\n')


def serve(state):
    """The web server's folder becomes a copy of that state, for the check to change."""
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(FILES / state, SITE)
