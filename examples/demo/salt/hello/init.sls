{%- set root = salt['config.get']('root_dir') %}

motd:
  file.managed:
    - name: {{ root }}/etc/motd
    - source: salt://hello/motd.jinja
    - template: jinja
    - makedirs: True
