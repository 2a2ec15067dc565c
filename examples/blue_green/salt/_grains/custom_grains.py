# /srv/salt/_grains/custom_grains.py
import socket
import subprocess

def get_custom_grains():
    grains = {}
    
    # Datacenter location
    hostname = socket.gethostname()
    if hostname.startswith('us-'):
        grains['datacenter'] = 'us-east'
    elif hostname.startswith('eu-'):
        grains['datacenter'] = 'eu-west'
    else:
        grains['datacenter'] = 'unknown'
    
    # Application role
    if 'web' in hostname:
        grains['roles'] = ['web', 'nginx']
    elif 'db' in hostname:
        grains['roles'] = ['database', 'postgresql']
    elif 'cache' in hostname:
        grains['roles'] = ['cache', 'redis']
    
    # Environment
    if '-prod-' in hostname:
        grains['env'] = 'production'
    elif '-stage-' in hostname:
        grains['env'] = 'staging'
    else:
        grains['env'] = 'development'
    
    return grains
