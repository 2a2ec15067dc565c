#!/usr/bin/env python
# salt_event_forwarder.py
import salt.config
import salt.utils.event
import json
import requests

def forward_to_monitoring(event_data, tag):
    """Forward Salt events to monitoring system"""
    
    # Filter interesting events
    interesting_tags = [
        'salt/job/*/ret/*',
        'salt/minion/*/start',
        'salt/auth',
        'salt/presence/change'
    ]
    
    for pattern in interesting_tags:
        if salt.utils.stringutils.expr_match(tag, pattern):
            # Format for monitoring system
            metric_data = {
                'metric': tag.replace('/', '.'),
                'value': 1,
                'timestamp': event_data.get('_stamp'),
                'tags': {
                    'minion': event_data.get('id', 'unknown'),
                    'success': event_data.get('success', False),
                    'fun': event_data.get('fun', 'unknown')
                }
            }
            
            # Send to monitoring API
            requests.post(
                'http://monitoring.example.com/api/metrics',
                json=metric_data
            )

def main():
    opts = salt.config.client_config('/etc/salt/master')
    event_bus = salt.utils.event.get_event(
        'master',
        sock_dir=opts['sock_dir'],
        transport=opts['transport'],
        opts=opts
    )
    
    while True:
        event = event_bus.get_event(full=True)
        if event:
            forward_to_monitoring(event['data'], event['tag'])

if __name__ == '__main__':
    main()
