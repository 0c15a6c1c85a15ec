"""The book's commands of `visprompt`, from its rooms."""

from .sharing.sharing_commands import COMMANDS as OF_SHARING
from .site.page_commands import COMMANDS as OF_PAGES
from .studies.study_commands import COMMANDS as OF_RUNS
from .studies.study_commands import of_artifacts

__all__ = ["COMMANDS", "of_artifacts"]
COMMANDS = OF_PAGES | OF_RUNS | OF_SHARING
