"""Real text in many scripts, from two Debian packages; none of it is kept here.

installation-guide-amd64: a book in 19 languages (prose).
iso-codes: names of languages, places and scripts in some 150 languages.
"""

import collections
import functools
import gettext
import html.parser
import itertools
import pathlib
import sys
import unicodedata

GUIDE = pathlib.Path("/usr/share/doc/installation-guide-amd64")
LOCALES = pathlib.Path("/usr/share/locale")
INSTALL = (
    "apt-get install --no-install-recommends installation-guide-amd64 iso-codes"
)


class TextOnly(html.parser.HTMLParser):
    """Collects a page's text; a block element ends a line."""

    BLOCKS = {"p", "h1", "h2", "h3", "h4", "li", "td", "dt", "dd", "pre", "div"}

    def __init__(self):
        super().__init__()
        self.parts = []

    def handle_starttag(self, tag, attrs):
        if tag in self.BLOCKS:
            self.parts.append("\0")

    def handle_data(self, data):
        self.parts.append(data)

    def lines(self):
        blocks = "".join(self.parts).split("\0")
        return [line for line in (" ".join(b.split()) for b in blocks) if line]


def guide_lines():
    """{language: paragraphs and other lines} of the book."""
    books = collections.defaultdict(list)
    for path in sorted(GUIDE.glob("*/*.html")):
        page = TextOnly()
        page.feed(path.read_text(encoding="utf-8"))
        books[path.parent.name] += page.lines()
    if len(books) < 10:
        sys.exit(f"{GUIDE} lacks its books; run: {INSTALL}")
    return dict(books)


def names():
    """{language: translated names}, each once."""
    found = collections.defaultdict(dict)
    for path in sorted(LOCALES.glob("*/LC_MESSAGES/iso_*-*.mo")):
        with open(path, "rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog
        for key, text in catalog.items():
            if key and isinstance(text, str):
                found[path.parts[-3]][text] = None
    if len(found) < 50:
        sys.exit(f"{LOCALES} lacks the names of iso-codes; run: {INSTALL}")
    return {language: list(texts) for language, texts in found.items()}


@functools.lru_cache(maxsize=None)
def script_of_char(char):
    if not char.isalpha():
        return None
    return unicodedata.name(char, "NONE").split()[0].split("-")[0]


def script(text):
    """The script of most letters: LATIN, CYRILLIC, CJK, ...; None without."""
    counts = collections.Counter(map(script_of_char, text))
    counts.pop(None, None)
    return counts.most_common(1)[0][0] if counts else None


def all_lines():
    """Every paragraph of the book and every name."""
    groups = [*guide_lines().values(), *names().values()]
    return list(itertools.chain.from_iterable(groups))


def by_script():
    """{name: texts of a line or a paragraph}: English apart, else by script."""
    groups = collections.defaultdict(list)
    for language, lines in guide_lines().items():
        for text in lines:
            group = "ENGLISH" if language == "en" else script(text)
            if language == "ja" and group in ("CJK", "KATAKANA"):
                group = "HIRAGANA"
            groups[group].append(text)
    for language, texts in names().items():
        if language.startswith("en"):
            continue
        for begin in range(0, len(texts), 12):
            text = ", ".join(texts[begin : begin + 12])
            groups[script(text)].append(text)
    groups.pop(None, None)
    return groups
