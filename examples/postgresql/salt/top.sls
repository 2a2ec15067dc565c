base:
  '*':
    - database.postgresql
