db:
  settings:
    bind-address: 127.0.0.1
    max_connections: 200
    innodb_buffer_pool_size: {{ [grains['mem_total'] // 4, 64] | max }}M
