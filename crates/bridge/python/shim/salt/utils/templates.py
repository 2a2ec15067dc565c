"""Rendering from Python: Halite's own engine does it."""

from salt import _host


def render_jinja_tmpl(text, context, tmplpath=None):
    return _host.call(
        "slsutil.renderer", string="#!jinja\n" + text, default_renderer="jinja",
        **{key: value for key, value in context.items() if not key.startswith("_") and key not in ("salt", "opts", "grains", "pillar")}
    )
