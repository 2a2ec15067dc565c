# A minion says that a site is gone: its web state puts it back, on that minion alone.
heal {{ data['id'] }}:
  local.state.apply:
    - tgt: {{ data['id'] }}
    - args:
      - mods: web
