"""Hooks of the documents' site (mkdocs.yml): pages and links outside of `docs/`.

The documents link to files of the repository by their paths there (`../CHANGELOG.md`,
`../examples/03-process/page.yaml`). On the site, these files are beside the pages, and the links
are changed accordingly. If the text of a link is the name of a file, the site shows the title of
the page instead.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADDED_PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
ADDED_FOLDERS = ("examples",)
HOME = "README.md"  # the documents' index; the repository's README links to it in turn

_CODE = re.compile(r"(?<=<code>)[^<]{20,}(?=</code>)")
_WORD_END = re.compile(r"(?<=\w)[_:./]+(?=\w)")
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)\s#]+)(?P<anchor>[^)\s]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the design records to the section "Designs", in their order."""
    records = sorted((ROOT / "docs" / "designs").glob("[0-9]*.md"))
    for section in config.nav or ():
        section.get("Designs", []).extend(f"designs/{path.name}" for path in records)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and examples from outside of `docs/`."""
    paths = [ROOT / name for name in ADDED_PAGES]
    for folder in ADDED_FOLDERS:
        paths += sorted(path for path in (ROOT / folder).rglob("*") if _is_shown(path))
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, content=path.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between pages of the site."""
    source = repository_path(page.file.src_uri)

    def replace(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
        here = posixpath.dirname(page.file.src_uri) or "."
        path = posixpath.relpath(site_path(target), here)
        return f"[{link_text(link['text'], target)}]({path}{link['anchor']})"

    return _LINK.sub(replace, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Allows line breaks in long names in code after the ends of words only."""
    return _CODE.sub(lambda code: _WORD_END.sub(r"\g<0><wbr>", code[0]), html)


def repository_path(site: str) -> str:
    """Returns the path in the repository of a file of the site."""
    return site if site in ADDED_PAGES or site.startswith(ADDED_FOLDERS) else f"docs/{site}"


def site_path(repository: str) -> str:
    """Returns the path on the site of a file of the repository."""
    if repository in ("docs", "README.md"):
        return HOME
    path = repository.removeprefix("docs/")
    return f"{path}/README.md" if (ROOT / repository).is_dir() else path


def link_text(text: str, target: str) -> str:
    """Returns the text of a link: the page's title if the text is the page's file name."""
    if not target.endswith(".md") or text != posixpath.basename(target):
        return text
    return (ROOT / target).read_text("utf-8").splitlines()[0].removeprefix("# ")


def _is_shown(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
