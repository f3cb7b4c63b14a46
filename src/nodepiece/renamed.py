"""Names that earlier versions wrote to disk, and what they are called now.

Run folders, experiments and checkpoints of format version 1 are read with the new names; nothing
is written with the old ones.
"""

from typing import Any

from nodepiece.errors import InputError

# group -> old key -> new key, of settings in TOML files and on the command line
SETTINGS = {
    "walks": {
        "weight": "coefficient",
        "choose_weight": "choose_coefficient",
        "apart": "separate_losses",
    },
}
# old name -> new name, of tensors in model.safetensors and checkpoint.safetensors
TENSORS = {"walks.weight": "walks.coefficient"}


def current_settings(table: dict[str, Any], source: str) -> dict[str, Any]:
    """A table of settings with its old keys renamed."""
    renamed = dict(table)
    for group, keys in SETTINGS.items():
        values = table.get(group)
        if not isinstance(values, dict):
            continue
        for old, new in keys.items():
            if old in values and new in values:
                raise InputError(
                    f"{source}: {group}.{old} is the old name of {group}.{new}; give one of them"
                )
        renamed[group] = {keys.get(key, key): value for key, value in values.items()}
    return renamed


def current_tensor(name: str) -> str:
    """The present name of a tensor; that of a checkpoint has a prefix such as "model/"."""
    group, slash, rest = name.rpartition("/")
    return group + slash + TENSORS.get(rest, rest)
