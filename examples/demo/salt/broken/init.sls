# `web.prot` is no key of the map: rendering stops here, with file and line.
{% from 'web/map.jinja' import web with context %}
firewall:
  test.configurable_test_state:
    - name: open port {{ web.prot }}
    - changes: False
    - result: True
