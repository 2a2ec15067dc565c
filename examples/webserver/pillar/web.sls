nginx:
  server_name: www.example.com
  app_port: 18080
