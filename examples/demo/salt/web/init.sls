{%- from 'web/map.jinja' import web with context %}
{%- set root = salt['config.get']('root_dir') %}
{%- set conf = root ~ '/' ~ web.conf %}

web-folder:
  file.directory:
    - name: {{ conf }}/sites
    - makedirs: True

web-main:
  file.managed:
    - name: {{ conf }}/nginx.conf
    - contents: |
        user {{ web.user }};
        worker_processes {{ web.workers }};
        include sites/*.conf;
    - require:
      - file: web-folder

{%- for name, site in pillar['web']['sites'] | dictsort %}

web-site-{{ name }}:
  file.managed:
    - name: {{ conf }}/sites/{{ name }}.conf
    - source: salt://web/site.conf.jinja
    - template: jinja
    - mode: '0644'
    - context:
        name: {{ name }}
        port: {{ site.get('port', 80) }}
        aliases: {{ site.get('aliases', []) | tojson }}
    - require:
      - file: web-folder
{%- endfor %}
