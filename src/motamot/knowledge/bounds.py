"""The bounds of learning and searching: on pages, on the way to them, on what a model is given. docs/learn.md."""

from __future__ import annotations

from typing import Final

__all__: list[str] = []

# What is read. Sizes are bytes as they are once unpacked, unless a line says otherwise.
PAGE_BYTES: Final = 4_000_000  # of one article; a long one has 200 kB, a page of a heavy site builder 2 MB
PAGE_CPU_SECONDS: Final = 5.0  # to take one article apart; 4 MB of honest HTML take two
ARTICLES: Final = 5_000  # of all sources; `--max-pages`
TEXT_CHARACTERS: Final = 100_000_000  # of all articles together: they are held in memory while they are written
FILES: Final = 100_000  # that a folder may hold, articles or not
FOLDERS_DEEP: Final = 40
FRONTMATTER_BYTES: Final = 32_000
TITLE_CHARACTERS: Final = 200
ADDRESS_CHARACTERS: Final = 2_000
PASSAGE_CHARACTERS: Final = 1_200  # about 300 tokens: a section or a good part of one
HEADING_CHARACTERS: Final = 120  # of each heading in the path to a passage
OPEN_TAGS: Final = 2_000  # that are minded; browsers give up at 512

# The way to a site.
SITEMAP_BYTES: Final = 50 << 20  # the protocol's own bound, unpacked
SITEMAPS: Final = 500  # of one index
SITEMAPS_DEEP: Final = 2  # an index may not list indexes (sitemaps.org): one step of grace
ROBOTS_BYTES: Final = 500 << 10  # RFC 9309, 2.5: at least that much is to be read
REDIRECTS: Final = 5
AT_ONCE: Final = 4  # requests to all sites together: a reader, not a load test
CONNECT_SECONDS: Final = 10.0
FETCH_SECONDS: Final = 30.0  # one page, from the request to its last byte
SITE_SECONDS: Final = 1_800.0  # all of them; `--max-seconds`

# What is asked, and what a model is given.
QUERY_WORDS: Final = 24
QUERY_CHARACTERS: Final = 2_000
CANDIDATES: Final = 60
PASSAGES: Final = 6  # in a result: about 1,500 tokens
PASSAGES_FIRST: Final = 3  # where they stand before each question, for small models
PASSAGES_EACH: Final = 2  # of one article
OVERVIEW_TITLES: Final = 2_000  # that are looked at for the overview
