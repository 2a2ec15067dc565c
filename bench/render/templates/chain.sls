{%- from 'lib/l1.jinja' import settings, option1 with context %}
app:
  file.managed:
    - name: {{ settings.path }}
    - mode: {{ settings.mode }}
    - ports: [{{ settings.ports | join(', ') }}]
    {{ option1('user', settings.user) }}
    {{ option1('depth', settings.depth) }}
