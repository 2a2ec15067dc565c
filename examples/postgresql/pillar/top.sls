base:
  '*':
    - database
