"""What a model of an API or of a format does not keep of ours."""


def lost_fields(ours, kept, path):
    """Where a model does not keep what we say: it does not know the field."""
    if isinstance(ours, dict) and isinstance(kept, dict):
        return [finding for key, value in ours.items() for finding in (
            lost_fields(value, kept[key], f"{path}.{key}") if key in kept
            else [f"{path}.{key} is no field"])]
    if (isinstance(ours, list) and isinstance(kept, list)
            and len(ours) == len(kept)):
        return [finding for i, (a, b) in enumerate(zip(ours, kept))
                for finding in lost_fields(a, b, f"{path}[{i}]")]
    return [] if ours == kept else [f"{path} is {ours}, kept as {kept}"]
