company: Example Ltd
role: {{ {'web': 'web server', 'db': 'database'}.get(grains['id'][:-1], 'machine') }}
