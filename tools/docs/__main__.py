"""``python -m tools.docs`` writes what pages and examples show from code and data."""

from __future__ import annotations

from tools.docs.examples import DOCUMENTS, EXAMPLES, text
from tools.docs.generated import PAGES, SCHEMA, schema_text

for name, build in DOCUMENTS.items():
    (EXAMPLES / name).write_text(text(build()))
SCHEMA.write_text(schema_text(), encoding="utf-8")
for page, written in PAGES.items():
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
