{%- set root = salt['config.get']('root_dir') %}

db-config:
  file.managed:
    - name: {{ root }}/etc/mysql/my.cnf
    - makedirs: True
    - mode: '0600'
    - contents: |
        [mysqld]
{%- for name, value in pillar['db']['settings'] | dictsort %}
        {{ name }} = {{ value }}
{%- endfor %}
    - require:
      - file: motd
