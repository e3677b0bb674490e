"""A file that is deleted together with its owner, and pickled with its contents.

The module has the name that it has in sklearn-crfsuite, because pickled estimators refer to it.
"""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

#: Key of the contents in a pickle, the same as in sklearn-crfsuite.
_CONTENTS = "__FILE_RESOURCE_DATA__"


class FileResource:
    """The file `filename`, which is never deleted, or without it a temporary one that `ensure_name` creates.

    `name` is its name, once it has one; `auto`: whether it is temporary.
    """

    def __init__(
        self, filename: str | None = None, keep_tempfiles: bool = False, suffix: str = "", prefix: str = ""
    ) -> None:
        self.name, self.auto = filename, filename is None
        self.keep_tempfiles, self.suffix, self.prefix = keep_tempfiles, suffix, prefix

    def ensure_name(self) -> None:
        """Create the temporary file if there is no name yet. Sets: `name`."""
        if self.name is None:
            handle, self.name = tempfile.mkstemp(suffix=self.suffix, prefix=self.prefix)
            os.close(handle)

    def cleanup(self) -> None:
        """Delete the temporary file, unless it is to be kept. Sets: `name`."""
        if self.auto and self.name is not None:
            if not self.keep_tempfiles:
                with contextlib.suppress(OSError):
                    os.unlink(self.name)
            self.name = None

    def refresh(self) -> None:
        """Replace the temporary file by a new one. Sets: `name`."""
        self.cleanup()
        self.ensure_name()

    def __del__(self) -> None:
        self.cleanup()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.name is not None and Path(self.name).exists():
            state[_CONTENTS] = Path(self.name).read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; the contents go to a new temporary file, because the old one may have changed."""
        contents = state.pop(_CONTENTS, None)
        vars(self).update(state)
        if contents is not None:
            self.name, self.auto = None, True
            self.ensure_name()
            Path(str(self.name)).write_bytes(contents)
