base:
  '*':
    - common
  'web*':
    - web
  'db*':
    - db
