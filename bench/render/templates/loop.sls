{%- set groups = ['wheel', 'adm', 'staff', 'users'] %}
{%- set shells = ['bash', 'zsh'] %}
{%- for i in range(2000) %}
user_{{ i }}:
  user.present:
    - name: {{ prefix }}{{ i }}
    - uid: {{ 1000 + i }}
    {%- if i % 3 == 0 %}
    - groups: [{{ groups[i % 4] | upper }}, {{ groups | join(', ') }}]
    {%- else %}
    - shell: {{ '/bin/sh' if i is even else '/bin/' ~ shells[i % 2] }}
    {%- endif %}
    - home: {{ settings.home | default('/home') }}/{{ loop.index }}
    - comment: {{ 'number x of x' | replace('x', i) }}
{%- endfor %}
