"""Are the HTML pages in a folder sound? html_pages.py FOLDER

Tags are closed in order, an id is unique in its page, every local link leads to a file and an id that exist, every page
is reached from index.html, and only index.html has links that leave the folder.
"""

import html.parser
import pathlib
import sys

# Elements without an end tag.
EMPTY = {"br", "hr", "img", "link", "meta"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.open, self.ids, self.links = [], set(), set()
        self.name = path.name
        self.feed(path.read_text())
        self.close()
        assert not self.open, f"{self.name}: not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        if tag not in EMPTY:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                assert value not in self.ids, f"{self.name}: the id {value} is not unique"
                self.ids.add(value)
            elif key in ("href", "src"):
                self.links.add(value)

    def handle_endtag(self, tag):
        last = self.open.pop() if self.open else None
        assert tag == last, f"{self.name}:{self.getpos()[0]}: </{tag}> ends <{last}>"

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)


def main(folder):
    pages = {path.name: Page(path) for path in folder.glob("*.html")}
    for page in pages.values():
        for link in page.links:
            file, _, fragment = link.partition("#")
            if ":" in file and page.name == "index.html":
                continue
            assert ":" not in file and not file.startswith("/"), f"{page.name} links to {link}"
            assert (folder / file).exists(), f"{page.name} links to {file}, which does not exist"
            if fragment:
                assert fragment in pages[file or page.name].ids, f"{page.name} links to {link}, which does not exist"
    missing = pages.keys() - pages["index.html"].links - {"index.html"}
    assert not missing, f"not in the index: {missing}"


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
