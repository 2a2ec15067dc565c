"""XML as dicts."""


def _name(tag):
    """Without the namespace."""
    return tag.rpartition("}")[2]


def to_dict(xmltree, attr=False):
    """An element's children by name; with `attr`, its attributes, too."""
    found = {}
    if attr:
        for name, value in xmltree.attrib.items():
            found[_name(name)] = value
    children = list(xmltree)
    if not children:
        text = xmltree.text
        if attr and found:
            if text is not None:
                found[_name(xmltree.tag)] = text
            return found
        return {_name(xmltree.tag): text}
    for child in children:
        name = _name(child.tag)
        inside = list(child) or (attr and child.attrib)
        value = to_dict(child, attr) if inside else child.text
        if name not in found:
            found[name] = value
            continue
        if not isinstance(found[name], list):
            found[name] = [found[name]]
        found[name].append(value if inside else {name: value})
    return found
