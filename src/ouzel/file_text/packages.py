"""Opens packages of XML files, such as Word files, and reads their parts piece by piece.

A part is never unpacked as a whole, so that the memory does not depend on its size. Document type
declarations are refused: no Office program writes them, and entities may grow without end.
"""

import io
import zipfile
import zlib
from collections.abc import Callable
from xml.parsers.expat import ExpatError, ParserCreate

MAX_XML_BYTES = 512 * 2**20  # a limit for all parts of a package together
_PIECE_BYTES = 2**16
_NAMESPACE_END = "}"  # expat writes it between a namespace and a name

StartElement = Callable[[str, dict[str, str]], None]


class UnreadablePackage(Exception):
    """The message is a sentence for the client."""


class Package:
    """Reads the parts of one package."""

    def __init__(self, data: bytes, max_xml_bytes: int = MAX_XML_BYTES) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise UnreadablePackage("the file is broken") from error
        self._names = frozenset(self._archive.namelist())
        self._max_xml_bytes = self._left = max_xml_bytes

    def has(self, name: str) -> bool:
        return name in self._names

    def read_part(
        self,
        name: str,
        start: StartElement,
        end: Callable[[str], None] = lambda name: None,
        characters: Callable[[str], None] | None = None,
    ) -> None:
        """Calls the functions with the elements and characters of a part.

        Names of elements and attributes come without namespaces. Raises UnreadablePackage.
        """
        parser = ParserCreate(namespace_separator=_NAMESPACE_END)
        parser.buffer_text = True
        parser.StartElementHandler = lambda tag, attributes: start(
            _strip(tag), {_strip(key): value for key, value in attributes.items()}
        )
        parser.EndElementHandler = lambda tag: end(_strip(tag))
        parser.StartDoctypeDeclHandler = _refuse_doctype
        if characters is not None:
            parser.CharacterDataHandler = characters
        try:
            with self._archive.open(name) as part:
                while piece := part.read(_PIECE_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise UnreadablePackage(
                            f"the file must unpack to <= {self._max_xml_bytes} bytes of XML, "
                            "it has more"
                        )
                    parser.Parse(piece)
            parser.Parse(b"", True)
        except (ExpatError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as bad:
            raise UnreadablePackage("the file is broken") from bad
        except NotImplementedError as error:
            raise UnreadablePackage("the file is packed in an unknown way") from error
        except RuntimeError as error:  # raised by zipfile for a part with a password
            raise UnreadablePackage("the file needs a password") from error


def _strip(name: str) -> str:
    return name.rpartition(_NAMESPACE_END)[2]


def _refuse_doctype(*_: object) -> None:
    raise UnreadablePackage("the file has a document type declaration")
