"""Names that earlier versions wrote to disk, and what they are called now.

Run folders, experiments and checkpoints of format version 1 are read with the new names; nothing
is written with the old ones.
"""

from typing import Any

from nodepiece.errors import InputError

# old name -> new name, of settings in TOML files and on the command line
SETTINGS = {
    "walks.weight": "walks.coefficient",
    "walks.choose_weight": "walks.choose_coefficient",
    "walks.apart": "walks.separate_losses",
    "training.smoothing": "one_vs_all.smoothing",
    "training.relation_weight": "one_vs_all.relation_weight",
    "training.regularization": "one_vs_all.regularization",
    "training.margin": "sampled.margin",
    "training.num_negatives": "sampled.num_negatives",
    "training.shared_negatives": "sampled.shared_negatives",
    "training.temperature": "sampled.temperature",
    "training.subsampling": "sampled.subsampling",
    "training.steps_per_epoch": "sampled.steps_per_epoch",
    "training.mask_share": "out_of_sample.mask_share",
}
# old name -> new name, of tensors in model.safetensors and checkpoint.safetensors
TENSORS = {"walks.weight": "scorers.walks.coefficient"}
MODULES = {"walks.": "scorers.walks."}  # the same, of all tensors of a module


def current_settings(table: dict[str, Any], source: str) -> dict[str, Any]:
    """A table of settings with old names renamed; a group without settings is left out."""
    renamed = {
        group: dict(values) if isinstance(values, dict) else values
        for group, values in table.items()
    }
    for old, new in SETTINGS.items():
        group, _, key = old.partition(".")
        values = renamed.get(group)
        if not isinstance(values, dict) or key not in values:
            continue
        new_group, _, new_key = new.partition(".")
        place = renamed.setdefault(new_group, {})
        if not isinstance(place, dict):
            continue  # the constructor of the record refuses it
        if new_key in place:
            raise InputError(f"{source}: {old} is the old name of {new}; give one of them")
        place[new_key] = values.pop(key)
        if not values:
            del renamed[group]
    return renamed


def current_tensor(name: str) -> str:
    """The present name of a tensor; that of a checkpoint has a prefix such as "model/"."""
    group, slash, rest = name.rpartition("/")
    if rest in TENSORS:
        return group + slash + TENSORS[rest]
    for old, new in MODULES.items():
        if rest.startswith(old):
            return group + slash + new + rest.removeprefix(old)
    return name
