# /srv/salt/apps/myapp.sls
myapp:
  python_app.deployed:
    - version: v2.3.1
    - repo_url: https://github.com/org/myapp
    - health_endpoint: /api/health
