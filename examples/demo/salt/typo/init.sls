# Two slips: `contnts` and `requre`. Salt writes an empty file and says nothing.
issue:
  file.managed:
    - name: {{ salt['config.get']('root_dir') }}/etc/issue
    - contnts: Welcome.
    - requre:
      - file: web-main
