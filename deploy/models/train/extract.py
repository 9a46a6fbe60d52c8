"""Reads documents of Debian packages: HTML, Mallard, dictionaries and plain text -> blocks of prose."""

import gzip
import html.parser
import re

BLOCKS = {
    "p", "li", "dd", "dt", "div", "td", "th", "tr", "ul", "ol", "dl", "table", "blockquote", "section",
    "item", "note", "page", "br", "h1", "h2", "h3", "h4", "h5", "h6", "title",
}  # fmt: skip
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6", "title"}
HIDDEN = {"script", "style", "pre", "nav", "head", "screen", "code", "info", "footer", "textarea"}


def squeeze(text):
    return " ".join(text.split())


class Markup(html.parser.HTMLParser):
    """Collects (is_heading, text) for each block of text of a page of HTML or Mallard."""

    def __init__(self):
        super().__init__()
        self.blocks = []
        self.text = []
        self.hidden = []
        self.heading = False

    def flush(self):
        text = squeeze("".join(self.text)).replace("¶", "")
        if text:
            self.blocks.append((self.heading, text))
        self.text = []

    def is_hidden(self, tag):
        # Code within a sentence is part of it; a block of code begins one.
        return tag in HIDDEN and not (tag == "code" and "".join(self.text).strip())

    def handle_starttag(self, tag, attributes):
        if self.hidden:
            if tag == self.hidden[0]:
                self.hidden.append(tag)
        elif self.is_hidden(tag):
            self.hidden.append(tag)
        elif tag in BLOCKS:
            self.flush()
            self.heading = tag in HEADINGS

    def handle_endtag(self, tag):
        if self.hidden:
            if tag == self.hidden[0]:
                self.hidden.pop()
        elif tag in BLOCKS:
            self.flush()
            self.heading = False

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def markup(path):
    page = Markup()
    page.feed(path.read_text(encoding="utf-8", errors="replace"))
    page.close()
    page.flush()
    return page.blocks


def unpacked(path):
    return gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")


def plain(path):
    """Paragraphs between empty lines. Braces, and brackets of sources, are marks of dictionaries."""
    text = re.sub(r"\[(1913 Webster|PJC|WordNet[^\]]*|Obs\.|R\.|[^\]]{0,40}\d{4}[^\]]{0,20})\]", "", unpacked(path))
    text = re.sub(r"[{}]|--[A-Z][\w. ]+\.$", "", text, flags=re.MULTILINE)
    return [(False, squeeze(block)) for block in re.split(r"\n\s*\n", text)]


def wordnet(path):
    """`headword: gloss` for each sense."""
    blocks = []
    for entry in re.split(r"\n(?=\S)", unpacked(path)):
        word, _, senses = entry.partition("\n")
        senses = re.sub(r"\[(syn|ant|also): [^\]]*\]", "", squeeze(senses))
        for sense in re.split(r"(?:\b(?:n|v|adj|adv) )?\b\d+: |^(?:n|v|adj|adv) : ", senses):
            if sense.strip():
                blocks.append((False, f"{word}: {sense.strip()}."))
    return blocks


def blocks_of(path):
    """[(is_heading, text)] of a document, in its order."""
    if path.name == "wn.dict.dz":
        return wordnet(path)
    if path.suffix in (".dz", ".gz"):
        return plain(path)
    return markup(path)
