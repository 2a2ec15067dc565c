"""Documentation in docstrings."""

import re


def strip_rst(docs):
    """Docstrings without the marks that are for makers of pages."""
    for name, text in docs.items() if isinstance(docs, dict) else ():
        if text and isinstance(text, str):
            text = re.sub(r"^[ ]*\.\. code-block:: \S+\n\n?", "", text, flags=re.M)
            text = text
            docs[name] = re.sub(r":(?:py:)?(?:mod|func|class|ref|conf_\w+):`([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", text)
    return docs


def parse_docstring(docstring):
    found = {"full": docstring, "deps": []}
    listed = re.search(r":depends:[ \t]*((?:[^\n]*\n?)(?:[ \t]+[^\n]*\n?)*)", docstring or "")
    if listed:
        found["deps"] = [name for name in re.split(r"[\s,*-]+", listed.group(1)) if name]
    return found
