postgresql:
  version: '15'
  port: 5432
  max_connections: 50
  shared_buffers: 32MB
  databases:
    - name: shop
      owner: shop
      password: change-me
