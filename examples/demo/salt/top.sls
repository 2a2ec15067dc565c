base:
  '*':
    - hello
  'web*':
    - web
  'db*':
    - db
