"""Files that commands write: new ones, or in place of what the same command wrote before; never over anything else."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from planner.errors import ConfigurationError, Finding

__all__ = ["FORCE_HELP", "Output", "begins_with"]

FORCE_HELP: Final = "Let -o replace a file that is not ours."
_STDOUT: Final = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}


def begins_with(*heads: str) -> Callable[[Path], bool]:
    """Whether a file is ours by its first words."""
    marks = tuple(head.encode() for head in heads)

    def ours(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(max(map(len, marks))).startswith(marks)

    return ours


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a command writes.

    Attributes:
        path: of a file; ``-`` or ``/dev/stdout``: standard output; the null device takes the text and forgets it.
        ours: whether a regular file is one that the command may replace.
        inputs: files that the command reads; none of them is ever replaced.
        force: replace a regular file that is not ours too.
        executable: whether it is a program.
    """

    path: Path
    ours: Callable[[Path], bool]
    inputs: tuple[Path, ...] = ()
    force: bool = False
    executable: bool = False

    @property
    def on_stdout(self) -> bool:
        """Whether it goes to standard output."""
        return str(self.path) in _STDOUT

    def check(self) -> None:
        """Refuse what could or must not be written, before anything is computed.

        Raises:
            ConfigurationError: the folder is missing or closed to us; something is there that is no regular file,
                is not ours, is closed to us, or is read by the same command.
        """
        if not self.on_stdout and not _is_null(self.path):
            self._check_file(self._real())

    def write(self, text: str) -> None:
        """Put ``text`` there; into a file in one move.

        Raises:
            ConfigurationError: as :meth:`check`, or it cannot be written; nothing was left behind.
        """
        if self.on_stdout:
            sys.stdout.write(text)
            return
        with self.at_once() as temporary:
            temporary.write_text(text, encoding="utf-8")

    @contextmanager
    def at_once(self) -> Iterator[Path]:
        """A file to write that takes the name at the end: readers see the old file or the new one, never a half.

        Raises:
            ConfigurationError: as :meth:`check`, or it cannot be written; nothing was left behind.
        """
        self.check()
        apart = self.on_stdout or _is_null(self.path)
        real = Path(tempfile.gettempdir(), "fleetplan") if apart else self._real()
        try:
            handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:100]}.", suffix=".part")
            os.close(handle)
            temporary = Path(name)
            try:
                yield temporary
                if apart:
                    self._pass_on(temporary)
                else:
                    # A temporary file is for its owner alone; what takes its place is as open as what was there.
                    temporary.chmod(self._mode(real))
                    temporary.replace(real)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as cause:
            if isinstance(cause, BrokenPipeError):
                raise
            self._refuse(f"that it cannot be written: {cause.strerror}", "a file that we may write", cause)

    def _pass_on(self, written: Path) -> None:
        if self.on_stdout:
            sys.stdout.write(written.read_text(encoding="utf-8"))

    def _real(self) -> Path:
        """The file itself, behind any links."""
        try:
            return self.path.resolve()
        except (OSError, RuntimeError) as cause:
            self._refuse("a link that leads nowhere", "the name of a file", cause)

    def _check_file(self, real: Path) -> None:
        try:
            found = real.lstat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as cause:
            self._refuse(f"that it cannot be looked at: {cause.strerror}", "a file that we may write", cause)
        if found is not None and not stat.S_ISREG(found.st_mode):
            self._refuse(_kind(found.st_mode), "the name of a file")
        folder = real.parent
        if not folder.is_dir():
            self._refuse(f"no folder {str(self.path.parent)!r}", "a file in a folder that exists")
        if not os.access(folder, os.W_OK):
            self._refuse(
                f"the folder {str(self.path.parent)!r}, which we may not write to",
                "a folder that we may write to",
            )
        if found is not None:
            self._check_old(real, found)

    def _check_old(self, real: Path, found: os.stat_result) -> None:
        if any(each.exists() and os.path.samestat(each.stat(), found) for each in self.inputs):
            self._refuse("the file that this command reads", "another file")
        if not os.access(real, os.W_OK):
            self._refuse("a file that we may not write to", "a file that we may write")
        if self.force or found.st_size == 0:
            return
        try:
            ours = self.ours(real)
        except OSError:
            ours = False
        if not ours:
            self._refuse(
                "a file that this command did not write",
                "a new file, one that this command wrote, or --force to replace it",
            )

    def _mode(self, real: Path) -> int:
        mask = _umask()
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o666 & ~mask
        return mode | (0o111 & ~mask) if self.executable else mode

    def _refuse(self, found: str, allowed: str, cause: BaseException | None = None) -> NoReturn:
        raise ConfigurationError.from_findings([Finding(str(self.path), None, "", found, allowed)]) from cause


def _is_null(path: Path) -> bool:
    """Whether it is the null device, by any name."""
    try:
        found = path.stat()
    except (OSError, RuntimeError):
        return False
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
