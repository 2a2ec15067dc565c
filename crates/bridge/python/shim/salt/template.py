"""Templates, rendered by Halite."""

from salt import _host


def compile_template(
    template, renderers, default, blacklist, whitelist, saltenv="base", sls="", input_data="", context=None, **kwargs
):
    """What the renderers make of a file, or of `input_data` if the template is `:string:`."""
    given = {"path": template} if template != ":string:" else {"string": input_data}
    return _host.call("slsutil.renderer", default_renderer=default, saltenv=saltenv, **given, **(context or {}))


def compile_template_str(template, renderers, default, blacklist, whitelist):
    return compile_template(":string:", renderers, default, blacklist, whitelist, input_data=template)
