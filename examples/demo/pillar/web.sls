web:
  settings:
    workers: 4
  sites:
    example.org:
      port: 8080
      aliases: [www.example.org]
    docs.example.org: {}
