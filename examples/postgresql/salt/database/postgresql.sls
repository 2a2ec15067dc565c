{% set pg_version = salt['pillar.get']('postgresql:version', '15') %}
{% set repository = salt['pillar.get']('postgresql:repository', {}) %}

postgresql_repo:
  pkgrepo.managed:
    - humanname: PostgreSQL Official Repository
    - name: {{ repository.get('name', 'deb https://apt.postgresql.org/pub/repos/apt/ ' ~ grains['oscodename'] ~ '-pgdg main') }}
    - file: /etc/apt/sources.list.d/postgresql.list
    {%- if repository.get('key_url', True) %}
    - key_url: {{ repository.get('key_url', 'https://www.postgresql.org/media/keys/ACCC4CF8.asc') }}
    {%- endif %}

postgresql_install:
  pkg.installed:
    - name: postgresql-{{ pg_version }}
    - require:
      - pkgrepo: postgresql_repo

postgresql_config:
  file.managed:
    - name: /etc/postgresql/{{ pg_version }}/main/postgresql.conf
    - source: salt://database/files/postgresql.conf.jinja
    - template: jinja
    - user: postgres
    - group: postgres
    - mode: 600
    - context:
        pg_version: '{{ pg_version }}'
        port: {{ salt['pillar.get']('postgresql:port', 5432) }}
        max_connections: {{ salt['pillar.get']('postgresql:max_connections', 100) }}
        shared_buffers: {{ salt['pillar.get']('postgresql:shared_buffers', '256MB') }}
    - require:
      - pkg: postgresql_install

postgresql_service:
  service.running:
    - name: postgresql
    - enable: True
    - watch:
      - file: postgresql_config

{% for db in salt['pillar.get']('postgresql:databases', []) %}
create_db_{{ db.name }}:
  postgres_database.present:
    - name: {{ db.name }}
    - owner: {{ db.owner }}
    - encoding: {{ db.get('encoding', 'UTF8') }}
    - template: template0
    - db_port: {{ salt['pillar.get']('postgresql:port', 5432) }}
    - require:
      - service: postgresql_service

create_user_{{ db.owner }}:
  postgres_user.present:
    - name: {{ db.owner }}
    - password: {{ db.password }}
    - encrypted: True
    - createdb: {{ db.get('createdb', False) }}
    - db_port: {{ salt['pillar.get']('postgresql:port', 5432) }}
    - require:
      - service: postgresql_service
    - require_in:
      - postgres_database: create_db_{{ db.name }}
{% endfor %}
