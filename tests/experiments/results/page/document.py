"""A page read without a browser: its elements in order, with their attributes and texts."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "br", "link", "hr"}


@dataclass
class Element:
    """Element of a page; `text` is all text in it."""

    tag: str
    attributes: dict[str, str]
    inside: list[str]  # ids of the elements around it
    text: str = ""
    children: list["Element"] = field(default_factory=list)


class Document(HTMLParser):
    """Parsed page."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        assert self._open == [], "an element is not closed"

    def handle_starttag(self, tag, attributes):
        ids = [one.attributes["id"] for one in self._open if "id" in one.attributes]
        made = Element(tag, {name: value or "" for name, value in attributes}, ids)
        self.elements.append(made)
        if self._open:
            self._open[-1].children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag

    def handle_data(self, data):
        for one in self._open:
            one.text += data

    def all(self, *tags: str, inside: str = "") -> list[Element]:
        """Elements of these names, inside the element of that id."""
        return [one for one in self.elements if one.tag in tags and (not inside or inside in one.inside)]

    def by_id(self, name: str) -> Element:
        (found,) = [one for one in self.elements if one.attributes.get("id") == name]
        return found


def spaced(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())
