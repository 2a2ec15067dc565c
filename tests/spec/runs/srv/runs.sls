{# What `compare_runs.py` runs: states that touch nothing but `out`. #}
{% set w = opts['root_dir'] ~ '/work' %}
{% set o = w ~ '/out' %}
base:
  file.directory: [{name: {{ o }}/d, mode: '0750', makedirs: True}]
f_contents:
  file.managed: [{name: {{ o }}/d/f1, contents: "line one\nline two\n", mode: '0640'}]
f_source:
  file.managed: [{name: {{ o }}/d/f2, source: salt://tree/a.txt}]
f_tmpl:
  file.managed:
    - name: {{ o }}/d/f3
    - source: salt://tree/t.jinja
    - template: jinja
    - context: {v: 7}
f_nosrc:
  file.managed: [{name: {{ o }}/d/f4, source: salt://tree/nope}]
f_list:
  file.managed: [{name: {{ o }}/d/f5, source: [salt://tree/nope, salt://tree/a.txt]}]
f_pillar:
  file.managed: [{name: {{ o }}/d/f6, contents_pillar: nope:x}]
f_grains:
  file.managed: [{name: {{ o }}/d/f7, contents_grains: id}]
f_lines:
  file.managed: [{name: {{ o }}/d/f8, contents: [a, b, c], contents_newline: False}]
f_nodir:
  file.managed: [{name: {{ o }}/no/dir/f, contents: x}]
f_mkdirs:
  file.managed: [{name: {{ o }}/mk/dir/f, contents: x, makedirs: True, dir_mode: '0700', mode: '0600'}]
f_norep:
  file.managed: [{name: {{ o }}/d/f1, contents: other, replace: False}]
f_hash:
  file.managed: [{name: {{ o }}/d/fh, source: {{ o }}/d/f2, source_hash: md5=00000000000000000000000000000000}]
f_check:
  file.managed: [{name: {{ o }}/d/fc, contents: x, check_cmd: /bin/false}]
f_relative:
  file.managed: [{name: rel/path, contents: x}]
append:
  file.append: [{name: {{ o }}/d/f1, text: [three, four]}]
prepend:
  file.prepend: [{name: {{ o }}/d/f1, text: zero}]
replace:
  file.replace: [{name: {{ o }}/d/f1, pattern: '^line (\w+)', repl: 'LINE \1'}]
replace_none:
  file.replace: [{name: {{ o }}/d/f1, pattern: nothinglikeit, repl: x}]
replace_app:
  file.replace: [{name: {{ o }}/d/f1, pattern: '^key=.*', repl: 'key=1', append_if_not_found: True}]
replace_missing:
  file.replace: [{name: {{ o }}/d/nofile, pattern: a, repl: b}]
block:
  file.blockreplace: [{name: {{ o }}/d/f1, marker_start: '# s', marker_end: '# e', content: "in\nside", append_if_not_found: True}]
block_no:
  file.blockreplace: [{name: {{ o }}/d/f2, marker_start: '# s', marker_end: '# e', content: x}]
line_ens:
  file.line: [{name: {{ o }}/d/f1, content: inserted, mode: ensure, after: 'LINE one'}]
line_del:
  file.line: [{name: {{ o }}/d/f1, match: four, mode: delete}]
line_rep:
  file.line: [{name: {{ o }}/d/f1, match: three, content: THREE, mode: replace}]
kv:
  file.keyvalue: [{name: {{ o }}/d/kv, key_values: {a: 1, b: 2}, separator: '=', append_if_not_found: True, create_if_missing: True}]
comment:
  file.comment: [{name: {{ o }}/d/f1, regex: '^LINE two'}]
uncomment:
  file.uncomment: [{name: {{ o }}/d/f1, regex: 'LINE two'}]
comment_no:
  file.comment: [{name: {{ o }}/d/f1, regex: '^nope'}]
sym:
  file.symlink: [{name: {{ o }}/d/l1, target: f1}]
sym_exists:
  file.symlink: [{name: {{ o }}/d/f2, target: f1}]
sym_force:
  file.symlink: [{name: {{ o }}/d/f5, target: f1, force: True}]
sym_mk:
  file.symlink: [{name: {{ o }}/x/y/l, target: /etc, makedirs: True}]
hard:
  file.hardlink: [{name: {{ o }}/d/h1, target: {{ o }}/d/f1}]
touch:
  file.touch: [{name: {{ o }}/d/t1}]
exists_yes:
  file.exists: [{name: {{ o }}/d/f1}]
exists_no:
  file.exists: [{name: {{ o }}/d/none}]
missing:
  file.missing: [{name: {{ o }}/d/none}]
copy:
  file.copy: [{name: {{ o }}/d/c1, source: {{ o }}/d/f2}]
copy_no:
  file.copy: [{name: {{ o }}/d/c2, source: {{ o }}/d/nope}]
copy_dir:
  file.copy: [{name: {{ o }}/cd, source: {{ o }}/d, makedirs: True}]
rename:
  file.rename: [{name: {{ o }}/d/r1, source: {{ o }}/d/c1}]
rename_no:
  file.rename: [{name: {{ o }}/d/r2, source: {{ o }}/d/nope}]
rec:
  file.recurse: [{name: {{ o }}/rec, source: salt://tree, file_mode: '0600', dir_mode: '0700'}]
rec_clean:
  file.recurse: [{name: {{ o }}/rec2, source: salt://tree, clean: True, include_pat: '*.txt'}]
rec_no:
  file.recurse: [{name: {{ o }}/rec3, source: salt://nosuch}]
dir_clean:
  file.directory: [{name: {{ o }}/cd, clean: True}]
dir_file:
  file.directory: [{name: {{ o }}/d/f1}]
dir_rec:
  file.directory: [{name: {{ o }}/rec, file_mode: '0644', dir_mode: '0755', recurse: [mode]}]
ser:
  file.serialize: [{name: {{ o }}/d/s.json, dataset: {a: 1, b: [1, 2]}, formatter: json}]
ser_y:
  file.serialize: [{name: {{ o }}/d/s.yaml, dataset: {a: 1, b: [1, 2]}, formatter: yaml}]
ser_m:
  file.serialize: [{name: {{ o }}/d/s.json, dataset: {c: 3}, formatter: json, merge_if_exists: True}]
acc:
  file.accumulated: [{name: acc, filename: {{ o }}/d/f1, text: acctext, require_in: [{file: block}]}]
tidied:
  file.tidied: [{name: {{ o }}/rec2, matches: ['a.*']}]
mknod:
  file.mknod: [{name: {{ o }}/d/fifo, ntype: p, mode: '0600'}]
decode:
  file.decode: [{name: {{ o }}/d/dec, encoded_data: aGVsbG8=, encoding_type: base64}]
absent:
  file.absent: [{name: {{ o }}/d/f8}]
absent_dir:
  file.absent: [{name: {{ o }}/mk}]
absent_no:
  file.absent: [{name: {{ o }}/nothing}]
pruned:
  file.pruned: [{name: {{ o }}/x/y, recurse: True}]
nreplaced:
  file.not_cached: [{name: salt://tree/a.txt}]
cached:
  file.cached: [{name: salt://tree/a.txt}]
patch:
  file.patch: [{name: {{ o }}/d/f2, source: salt://p.patch}]
ini:
  ini.options_present: [{name: {{ o }}/d/i.ini, separator: '=', sections: {sec: {a: 1, b: two}}}]
ini_abs:
  ini.options_absent: [{name: {{ o }}/d/i.ini, sections: {sec: [a]}}]
ini_sec:
  ini.sections_present: [{name: {{ o }}/d/i.ini, sections: {new: {z: 9}}}]
ini_secabs:
  ini.sections_absent: [{name: {{ o }}/d/i.ini, sections: [new]}]
cmd1:
  cmd.run: [{name: 'echo out; echo err >&2; exit 3'}]
cmd2:
  cmd.run: [{name: echo ok, creates: {{ o }}/d/f1}]
cmd3:
  cmd.run: [{name: 'echo "changed=yes comment=fine"', stateful: True}]
cmd4:
  cmd.script: [{name: s, source: salt://s.sh}]
cmd5:
  cmd.run: [{name: 'echo x', unless: 'true'}]
cmd6:
  cmd.run: [{name: 'sleep 5', timeout: 1}]
cmd7:
  cmd.wait: [{name: 'echo w', watch: [{file: f_contents}]}]
git1:
  git.latest: [{name: {{ w }}/git, target: {{ o }}/g1}]
git2:
  git.cloned: [{name: {{ w }}/git, target: {{ o }}/g2, branch: dev}]
git3:
  git.detached: [{name: {{ w }}/git, target: {{ o }}/g3, rev: v1}]
git4:
  git.config_set: [{name: user.name, value: Bob, repo: {{ o }}/g1}]
git5:
  git.latest: [{name: {{ w }}/nosuchgit, target: {{ o }}/g5}]
git6:
  git.present: [{name: {{ o }}/g6, bare: True}]
git7:
  git.config_unset: [{name: user.name, repo: {{ o }}/g1}]
arch:
  archive.extracted: [{name: {{ o }}/ar, source: salt://a.tgz, enforce_toplevel: False, list_options: null}]
arch_zip:
  archive.extracted: [{name: {{ o }}/ar2, source: salt://nope.zip}]
auth:
  ssh_auth.present: [{name: 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7 me@x', user: root, config: {{ o }}/ak}]
auth2:
  ssh_auth.present: [{name: AAAAC3NzaC1lZDI1NTE5AAAAIJ3T, enc: ssh-ed25519, user: root, config: {{ o }}/ak, options: [no-pty], comment: hey}]
auth3:
  ssh_auth.absent: [{name: 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7 me@x', user: root, config: {{ o }}/ak}]
kh:
  ssh_known_hosts.present: [{name: h.example, user: root, config: {{ o }}/kh, key: AAAAC3NzaC1lZDI1NTE5AAAAIOtqa5wxBc1kFuYrfjsrpgX8tRY9UPyLmWe8ckEC1OF4, enc: ssh-ed25519, hash_known_hosts: False}]
kh2:
  ssh_known_hosts.absent: [{name: h.example, user: root, config: {{ o }}/kh}]
env:
  environ.setenv: [{name: FOO5, value: bar}]
mod:
  module.run: [{test.echo: [{text: hi}]}]
mod2:
  module.run: [{nosuch.fun: []}]
test_f:
  test.fail_without_changes: []
test_s:
  test.succeed_with_changes: []
test_c:
  test.check_pillar: [{present: [x]}]
saltm:
  salt.nosuch: []
