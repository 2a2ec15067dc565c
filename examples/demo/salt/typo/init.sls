# Two slips: `contnts` and `requre`. Salt writes an empty file and says nothing.
motd:
  file.managed:
    - name: {{ salt['config.get']('root_dir') }}/etc/motd
    - contnts: Welcome.
    - requre:
      - file: web-main
