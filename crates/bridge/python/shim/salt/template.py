"""Templates, rendered by Halite."""

from salt import _host


def compile_template(
    template, renderers, default, blacklist, whitelist, saltenv="base", sls="", input_data="", context=None, **kwargs
):
    """What the renderers make of a file, or of `input_data` if the template is `:string:`."""
    given = {"path": template} if template != ":string:" else {"string": input_data}
    if sls:
        given["sls"] = sls
    return _host.call("slsutil.renderer", default_renderer=default, saltenv=saltenv, **given, **(context or {}))


def compile_template_str(template, renderers, default, blacklist, whitelist):
    return compile_template(":string:", renderers, default, blacklist, whitelist, input_data=template)


def check_render_pipe_str(pipestr, renderers, blacklist, whitelist):
    """The renderers of `jinja|yaml args`, each with its arguments; none if one of them is not there."""
    from salt.utils.stringutils import check_whitelist_blacklist

    if pipestr is None:
        return []
    pipe = [part.strip() for part in pipestr.split("|")]
    try:
        if pipe[0] == "yaml_jinja":
            pipe[:1] = ["jinja", "yaml"]
        found = []
        for part in pipe:
            name, _, args = part.partition(" ")
            if check_whitelist_blacklist(name, whitelist=whitelist, blacklist=blacklist):
                found.append((renderers[name], args.strip()))
        return found
    except KeyError:
        return []


def template_shebang(template, renderers, default, blacklist, whitelist, input_data):
    """The renderers that the first line of a template names, or the usual ones."""
    if template == ":string:":
        line = input_data.split("\n")[0]
    else:
        with open(template, encoding="utf-8") as handle:
            line = handle.readline()
    found = []
    if line.startswith("#!") and not line.startswith("#!/"):
        found = check_render_pipe_str(line.strip()[2:], renderers, blacklist, whitelist)
    return found or check_render_pipe_str(default, renderers, blacklist, whitelist)
