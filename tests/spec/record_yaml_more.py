#!/usr/bin/env python3
"""
Record yaml_more.json: what genuine Salt makes of YAML where the main case file is thin.

Usage:  <python with salt installed> record_yaml_more.py yaml_more.json

The format is that of yaml_cases.json. Besides `load` (Salt's loader) and `dump` (safe_dump) there
are `plain` (PyYAML's own safe loader, which salt.serializers.yaml uses) and `filter` (the Jinja
filters yaml_dquote, yaml_squote and yaml_encode).
"""
import datetime
import json
import sys
from collections import OrderedDict

import salt.serializers.yaml
import salt.utils.yaml
import salt.utils.yamlencoding
import yaml
from salt.utils.yamlloader import SaltYamlSafeLoader

LOAD = {
    # block scalars
    "block/keep_at_end": "a: |+\n  x\n\n\n",
    "block/strip_at_end": "a: |-\n  x\n\n\n",
    "block/indicator_then_chomp": "a: |2-\n    x\n  y\n\nb: 1\n",
    "block/chomp_then_indicator": "a: |-2\n    x\n  y\n",
    "block/indicator_zero": "a: |0\n x\n",
    "block/two_digits": "a: |12\n x\n",
    "block/bad_header": "a: |x\n  y\n",
    "block/comment_header": "a: | # comment\n  x\n",
    "block/comment_no_space": "a: |# comment\n  x\n",
    "block/less_indented_hash": "a: |\n  x\n # comment\nb: 1\n",
    "block/leading_blank_lines": "a: |\n\n\n  x\n  y\n",
    "block/leading_deeper_blank": "a: |\n    \n  x\n",
    "block/no_final_newline": "a: |\n  x",
    "block/folded_no_final_newline": "a: >\n  x\n  y",
    "block/folded_more_indented": "a: >\n  one\n  two\n\n    code\n    more\n\n  three\n",
    "block/folded_keep": "a: >+\n  one\n\n\nb: 2\n",
    "block/folded_leading_break": "a: >\n\n  one\n  two\n",
    "block/folded_tab_line": "a: >\n  one\n  \ttwo\n  three\n",
    "block/trailing_spaces": "a: |\n  x  \n  y\t\n",
    "block/in_list": "- |\n x\n- >\n y\n z\n",
    "block/in_list_of_maps": "l:\n  - contents: |\n      a: b\n      - c\n    mode: '0644'\n  - x\n",
    "block/root": "|\n x\n y\n",
    "block/root_doc": "--- |\n x\n...\n",
    "block/crlf": "a: |\r\n  x\r\n  y\r\nb: 1\r\n",
    "block/in_flow": "[|\n x]\n",
    "block/jinja_text": "a: |\n  {% if x %}\n  {{ y }}\n  {% endif %}\n",
    # flow in block and the reverse
    "flow/in_block_lines": "a: [1,\n  2,\n3]\n",
    "flow/map_lines": "a: {x: 1,\n    y: [a, b],\n  z: {}}\nb: 2\n",
    "flow/unindented_close": "a: [\n1\n]\n",
    "flow/comment_inside": "a: [1, # one\n  2] # two\n",
    "flow/missing_comma": "[a b]\n",
    "flow/missing_comma_quoted": "['a' 'b']\n",
    "flow/double_comma": "[a,, b]\n",
    "flow/leading_comma": "[, a]\n",
    "flow/map_double_comma": "{a: 1,, b: 2}\n",
    "flow/nested_pairs": "[a: [b: {c: d}], e]\n",
    "flow/empty_key": "{: a}\n",
    "flow/empty_value": "{a: , b: }\n",
    "flow/quoted_adjacent": "{'a':1, \"b\":[2]}\n",
    "flow/plain_with_question": "[?a, a?b, x? ]\n",
    "flow/question_alone": "[? a, ?]\n",
    "flow/colon_comma": "[a:, b]\n",
    "flow/multiline_plain": "[a\n  b, c\n\n  d]\n",
    "flow/multiline_key": "{a\n b: c}\n",
    "flow/dash": "[- a]\n",
    "flow/block_map_inside": "[\n  a: 1\n  b: 2\n]\n",
    "flow/mismatched": "[a}\n",
    "flow/mismatched_map": "{a]\n",
    "flow/deep": "[[[[[[[[[[a]]]]]]]]]]\n",
    "flow/at_sign": "[@a]\n",
    "flow/template_value": "a: {{ x }} y\n",
    "flow/template_in_list": "- {{ x }}\n",
    "flow/template_block": "{% if a %}\nb: 1\n{% endif %}\n",
    # comments
    "comment/only_indented": "  # x\n",
    "comment/between": "a: 1\n  # x\nb:\n  # y\n  - 1\n# z\n  - 2\n",
    "comment/after_key": "a: # x\n  b: 1 # y\n",
    "comment/after_dash": "- # x\n  a\n- b\n",
    "comment/in_plain": "a: b #c\n  d\n",
    "comment/in_quoted": "a: 'b #c'\nb: \"c #d\"\n",
    "comment/hash_in_word": "a: b#c d#e\n",
    "comment/after_anchor": "a: &x # y\n  b: 1\n",
    # indentation
    "indent/list_deeper": "a:\n    - 1\n    - 2\nb:\n- 3\n",
    "indent/list_bad": "a:\n  - 1\n - 2\n",
    "indent/list_over": "a:\n  - 1\n    - 2\n",
    "indent/map_in_list": "- a: 1\n  b: 2\n-   c: 3\n    d: 4\n",
    "indent/map_in_list_bad": "- a: 1\n b: 2\n",
    "indent/map_in_list_over": "- a: 1\n   b: 2\n",
    "indent/tab_before_key": "a:\n  b: 1\n\tc: 2\n",
    "indent/tab_blank_line": "a: 1\n\t\nb: 2\n",
    "indent/tab_after_value": "a: 1\t\nb: 2\t# x\n",
    "indent/tab_in_continuation": "a: b\n\tc\n",
    "indent/plain_at_zero": "a:\nb\n",
    "indent/sls_typo": "x:\n  pkg.installed\n    - name: y\n",
    "indent/sls_no_dash": "x:\n  pkg.installed:\n    name: y\n    - z\n",
    "indent/sls_missing_colon": "x:\n  file.managed\n  - name: y\nz: 1\n",
    "indent/key_then_text": "x: 1\ny\nz: 2\n",
    "indent/text_then_key": "hello\nx: 1\n",
    # keys
    "key/multiline_plain": "a\n b: c\n",
    "key/multiline_quoted": "'a\n b': c\n",
    "key/list_empty": "? []\n: c\n",
    "key/null_dup": "~: 1\nnull: 2\n",
    "key/float_int_dup": "1: a\n1.0: b\n",
    "key/nan_dup": ".nan: 1\n.nan: 2\n",
    "key/octal_dup": "0644: a\n644: b\n",
    "key/quoted_not_dup": "1: a\n'1': b\n",
    "key/empty_string_dup": "'': a\n\"\": b\n",
    "key/dup_order": "a: {x: 1, x: 2}\nb: 1\nb: 2\n",
    "key/dup_level": "a: {x: 1, x: 2}\nb: {c: {d: 1, d: 2}}\n",
    "key/dup_value_error_first": "a: 1\na: !x 2\n",
    "key/bytes": "!!binary aGk=: 1\n",
    "key/set": "? !!set {a}\n: b\n",
    "key/value_tag": "=: 1\na: 2\n",
    "key/colon_inside": "a:b: c\nhttp://x:80: y\n",
    "key/question_in_list": "- ? a\n  : b\n",
    "key/explicit_seq": "?\n  - a\n:\n  - b\n",
    "key/alias_dict": "a: &x {b: c}\n*x : d\n",
    "key/tuple_like": "(1, 2): a\n",
    # anchors, merges
    "anchor/forward": "a: *x\nb: &x 1\n",
    "anchor/on_key": "&k a: 1\nb: *k\n",
    "anchor/on_null": "a: &x\nb: *x\n",
    "anchor/nested": "a: &x {b: &y [1, {c: &z 2}]}\nd: *x\ne: *y\nf: *z\n",
    "anchor/with_tag": "a: &x !!str 1\nb: !!str &y 2\nc: [*x, *y]\n",
    "anchor/two": "a: &x &y 1\n",
    "anchor/bad_char": "a: &x.y 1\n",
    "anchor/alias_with_tag": "a: &x 1\nb: !!str *x\n",
    "anchor/recursive_map": "a: &x\n  b: *x\n  c: 1\nd: 2\n",
    "merge/chain": "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: &c {<<: *b, z: 3}\nd: {<<: *c, x: 9}\n",
    "merge/order": "a: &a {x: 1, y: 2}\nb:\n  z: 0\n  <<: *a\n  y: 5\n",
    "merge/inline": "a:\n  <<: {x: 1}\n  y: 2\n",
    "merge/list_order": "a: {<<: [{x: 1}, {y: 2}], z: 3}\n",
    "merge/list_empty": "a: {<<: [], z: 3}\n",
    "merge/null": "a: {<<: , z: 3}\n",
    "merge/in_list_of_list": "a: {<<: [[{x: 1}]]}\n",
    "merge/by_text": "a: {<<: {'1': x}, 1: y}\n",
    "merge/self": "a: &a {x: 1, <<: *a}\n",
    "merge/sls": "base: &base\n  user: root\n  mode: 0644\nfiles:\n  - <<: *base\n    name: /a\n  - <<: *base\n    name: /b\n    mode: 0600\n",
    # documents
    "doc/start_only": "---\n",
    "doc/start_comment": "--- # x\na: 1\n",
    "doc/inline_map": "--- {a: 1}\n",
    "doc/inline_key": "--- a: 1\n",
    "doc/two_empty": "---\n---\n",
    "doc/end_only": "...\n",
    "doc/end_twice": "a: 1\n...\n...\n",
    "doc/trailing_start": "a: 1\n---\n",
    "doc/dashes_in_text": "a: ---\nb: a---\n",
    "doc/three_dashes_key": "---a: 1\n",
    "doc/in_quoted": "a: 'x\n---\ny'\n",
    "doc/version_dup": "%YAML 1.1\n%YAML 1.1\n---\na\n",
    "doc/version_other": "%YAML 2.0\n---\na\n",
    "doc/version_bad": "%YAML x\n---\na\n",
    "doc/tag_dup": "%TAG !a! b:\n%TAG !a! c:\n---\na\n",
    "doc/tag_used": "%TAG !y! tag:yaml.org,2002:\n---\n- !y!int '5'\n- !y!str 5\n",
    "doc/tag_unknown_handle": "a: !y!int 5\n",
    "doc/directive_no_start": "%YAML 1.1\na: 1\n",
    "doc/jinja_directive": "{%- set a = 1 %}\nb: 1\n",
    "doc/shebang": "#!jinja|yaml\na: 1\n",
    "doc/shebang_py": "#!py\ndef run():\n  return {}\n",
    # scalars
    "scalar/escapes": 'a: "\\0\\a\\b\\e\\f\\v\\r\\N\\_\\L\\P\\U0001F600"\n',
    "scalar/escape_short": 'a: "\\x4"\n',
    "scalar/escape_surrogate": 'a: "\\ud800"\n',
    "scalar/escape_eof": 'a: "\\',
    "scalar/escape_space": 'a: "x\\ y\\\ty"\n',
    "scalar/quoted_blank_lines": "a: 'x\n\n\n  y'\nb: \"x  \n   y\"\n",
    "scalar/quoted_then_text": "a: 'x' y\n",
    "scalar/quoted_then_colon": "a: 'x': y\n",
    "scalar/single_backslash": "a: 'c:\\x'\n",
    "scalar/colon_space_quoted": "a: 'b: c'\nd: \"e: f\"\n",
    "scalar/trailing_colon": "a: b:\n",
    "scalar/percent": "a: 50%\nb: x %y\n",
    "scalar/star": "a: *.conf\n",
    "scalar/bang": "a: !x y\n",
    "scalar/pipe_text": "a: a | b\nb: > x\n",
    "scalar/backtick": "a: x `y`\n",
    "scalar/int_underscore": "- 1_000_000\n- 0_7\n- _1\n- 1_\n- 0x_f\n- 0b_1\n",
    "scalar/int_zero_underscore": "a: 0_\n",
    "scalar/int_hex_empty": "a: 0x_\n",
    "scalar/int_signs": "- +0\n- -0\n- +0x1F\n- -0b11\n- -0777\n- +12:30\n- -12:30:45\n",
    "scalar/int_big": "- 9223372036854775807\n- 9223372036854775808\n- -9223372036854775809\n- 0xffffffffffffffffffff\n",
    "scalar/int_digits_limit": "a: " + "9" * 4301 + "\n",
    "scalar/float_forms": "- 1e3\n- 1.e+3\n- 1.0E-2\n- +.inf\n- -.Inf\n- .NAN\n- 1_0.5_0\n- -1.5\n- 1:30.25\n- 12e+2\n- 0.0\n- -0.0\n- 1.7976931348623157e+309\n",
    "scalar/versions": "- 1.10\n- 1.10.1\n- 10.04\n- 3.10\n- 20.04-1\n- v1.0\n",
    "scalar/times": "- 12:30\n- 12:30:45.5\n- 2001-12-14 21:59:43.10 -5\n- 2001-12-15T02:59:43Z\n- 2001-1-1\n- 2001-01-01 1:00:00\n",
    "scalar/bools": "- yes\n- Yes\n- YES\n- yEs\n- y\n- On\n- OFF\n- TRUE\n- tRUE\n",
    "scalar/tag_int_text": "a: !!int abc\n",
    "scalar/tag_int_empty": "a: !!int ''\n",
    "scalar/tag_bool_text": "a: !!bool maybe\n",
    "scalar/tag_float_text": "a: !!float x\n",
    "scalar/tag_float_int": "a: !!float 0x10\n",
    "scalar/tag_float_words": "- !!float nan\n- !!float Infinity\n- !!float ' 1_0 '\n",
    "scalar/tag_null_text": "a: !!null abc\n",
    "scalar/tag_str_seq": "a: !!str [b]\n",
    "scalar/tag_int_seq": "a: !!int [b]\n",
    "scalar/tag_seq_map": "a: !!seq {b: c}\n",
    "scalar/tag_map_seq": "a: !!map [b]\n",
    "scalar/tag_set_dup": "!!set {a, a}\n",
    "scalar/tag_pairs_scalar": "!!pairs [a]\n",
    "scalar/tag_pairs_many": "!!pairs [{a: 1, b: 2}]\n",
    "scalar/tag_pairs_map": "!!pairs {a: 1}\n",
    "scalar/tag_omap_map": "!!omap {b: 1, a: 2}\n",
    "scalar/tag_value_map": "!!str {=: x, y: z}\n",
    "scalar/tag_binary_bad": "a: !!binary a\n",
    "scalar/tag_binary_ascii": "a: !!binary é\n",
    "scalar/tag_binary_ascii_run": "a: !!binary 日本語\n",
    "scalar/tag_binary_lines": "a: !!binary |\n  aGVs\n  bG8=\n",
    "scalar/tag_python_tuple": "a: !!python/tuple [1, 2]\n",
    "scalar/tag_python_name": "a: !!python/name:os.system\n",
    "scalar/tag_escaped": "a: !x%20y z\n",
    "scalar/tag_escaped_bad": "a: !x%zz z\n",
    "scalar/tag_flow": "[!!str,b]\n",
    "scalar/tag_unfinished": "a: !<tag b\n",
    "scalar/tag_empty_verbatim": "a: !<> b\n",
    "scalar/tag_bare_quoted": "- ! '12'\n- ! yes\n- ! [a]\n- !\n",
    "scalar/unicode_columns": "é: 'ü' x\n",
    "scalar/wide_key_dup": "日本: 1\n日本: 2\n",
    "scalar/ls_ps": "a: x\u2028b: y\u2029c: z\n",
    "scalar/bom_inside": "a: 1\n\ufeffb: 2\n",
    "scalar/nonchar": "a: \uffff\n",
    "scalar/c1": "a: \x9f\n",
    "scalar/control_after_wide": "é: \x02\n",
    # errors deep inside
    "error/in_list": "a:\n  - b\n  - c: d: e\n",
    "error/unclosed_in_list": "a:\n  - 'b\n  - c\nd: e\n",
    "error/unclosed_flow_key": "a: {b: [c, d}\n",
    "error/late_tab": "a:\n  b:\n    - c\n\t- d\n",
    "error/quote_in_name": "a:\n  - name: echo \"x\": y\n",
    "error/unmatched_quote_value": "a: \"b\" c\"\n",
    "error/long_simple_key": "? " + "a" * 2000 + "\n: b\n",
    "error/required_key": "a: 1\n{b\nc: 2\n",
    "error/end_in_flow": "{",
    "error/end_in_seq": "- [a,",
    "error/end_in_map_after_key": "a: 1\n{",
}


def shared(*keys):
    inner = [1, 2]
    return {key: inner for key in keys}


def recursive():
    value = [1]
    value.append(value)
    return value


LONG = "The quick brown fox jumps over the lazy dog and then some more words follow "
# name: (typed value or builder, options)
DUMP = {
    "fold/plain": ({"k": LONG * 3}, {"default_flow_style": False}),
    "fold/plain_trailing": ({"k": (LONG * 2).strip()}, {"default_flow_style": False}),
    "fold/double_space": ({"k": "a  b " * 40}, {"default_flow_style": False}),
    "fold/width_40": ({"k": LONG}, {"default_flow_style": False, "width": 40}),
    "fold/width_max": ({"k": LONG * 3}, {"default_flow_style": False, "width": 2147483647}),
    "fold/width_tiny": ({"k": LONG}, {"default_flow_style": False, "width": 4}),
    "fold/single_quoted": ({"k": "'" + LONG * 2 + "'"}, {"default_flow_style": False}),
    "fold/double_quoted": ({"k": "\t" + LONG * 2 + "\x01  end"}, {"default_flow_style": False}),
    "fold/double_quoted_spaces": ({"k": "\x01" + "word  " * 40}, {"default_flow_style": False}),
    "fold/newlines_long": ({"k": (LONG + "\n") * 3}, {"default_flow_style": False}),
    "fold/nested": ({"a": {"b": {"c": [LONG * 2, {"d": LONG * 2}]}}}, {"default_flow_style": False}),
    "fold/unicode": ({"k": "日本語 " * 40}, {"default_flow_style": False}),
    "fold/long_key": ({"k" * 130: 1, "w " * 70: [1]}, {"default_flow_style": False}),
    "fold/key_128": ({"k" * 128: 1, "é" * 64: 2, "é" * 65: 3}, {"default_flow_style": False}),
    "fold/multiline_key": ({"a\nb": 1}, {"default_flow_style": False}),
    "fold/flow_strings": ([LONG, LONG], {"default_flow_style": True}),
    "fold/flow_dicts": ([{"name": "x%d" % i, "value": i} for i in range(20)], {"default_flow_style": True}),
    "fold/auto": ({"a": list(range(40)), "b": {"c": [1], "d": {}}, "e": "x"}, {}),
    "style/literal": ({"a": "x\ny\n", "b": " lead\n", "c": "keep\n\n", "d": "z"}, {"default_style": "|"}),
    "style/folded": ({"a": LONG * 2 + "\n\n more\nx\n"}, {"default_style": ">"}),
    "style/single": ({"a": "x", "b": 1, "c": "it's\n"}, {"default_style": "'"}),
    "style/double": ({"a": "x", "b": 1.5, "c": None}, {"default_style": '"'}),
    "style/literal_open_end": ("x\n\n", {"default_style": "|"}),
    "style/literal_trailing_space": ("x \ny", {"default_style": "|"}),
    "style/canonical": ({"a": [1, "b"], "c": {}}, {"canonical": True}),
    "style/explicit": ({"a": 1}, {"explicit_start": True, "explicit_end": True}),
    "style/explicit_block": ({"a": 1}, {"explicit_start": True, "default_flow_style": False}),
    "style/explicit_scalar": ("x", {"explicit_start": True}),
    "style/crlf": ({"a": "x\ny", "b": [1]}, {"line_break": "\r\n", "default_flow_style": False}),
    "style/version": ({"a": 1}, {"version": [1, 1]}),
    "style/indent_8": ({"a": {"b": [1, {"c": 2}]}}, {"indent": 8, "default_flow_style": False}),
    "style/indent_0": ({"a": {"b": [1]}}, {"indent": 0, "default_flow_style": True}),
    "style/unsorted": ({"b": 1, "a": 2}, {"sort_keys": False, "default_flow_style": False}),
    "style/mixed_keys": ({"b": 1, 1: 2, None: 3}, {"default_flow_style": False}),
    "style/number_keys": ({10: 1, 9: 2, 1.5: 3, True: 4}, {"default_flow_style": False}),
    "style/tuple_key": ({(1, "a"): 2, (): 3}, {"default_flow_style": False}),
    "style/tuple_key_flow": ({(1, 2): [3]}, {"default_flow_style": True}),
    "style/no_unicode": (["é", "日本", "a\xa0b", "\ufeff"], {"allow_unicode": False}),
    "style/unicode_special": (["\u2028", "\u2029", "\xa0", "\ufeff", "\u200b", "\U0001f600", "\ue000"], {}),
    "style/control": (["\x00", "\x07", "\x1b", "\x7f", "\x9f", "a\rb", "\t"], {}),
    "style/nested_empty": ([[], [[]], {}, [{}], {"a": []}], {"default_flow_style": False}),
    "style/list_in_list": ([[1, 2], [[3], [4, [5]]]], {"default_flow_style": False}),
    "style/bytes": ([b"", b"\x00\xff" * 60, b"text"], {"default_flow_style": False}),
    "style/bytes_flow": ({"a": b"text"}, {"default_flow_style": True}),
    "style/bytes_auto": ({"a": b"text"}, {}),
    "style/set": ({"s": {1}, "e": set()}, {"default_flow_style": False}),
    "style/datetime": ([datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.datetime(2020, 1, 2, 3, 4, 5, 600)], {}),
    "style/words": (["true", "True", "TRUE", "tRUE", "yes", "Y", "off", "NULL", "nil", "none", "None"], {"default_flow_style": False}),
    "style/numbers_as_text": (["1", "-1", "+1", "1_0", "0o7", "07", "08", "1e5", "1.e+5", ".5", "-.5", "1:30", "0x", "0xf", "0b1", "."], {"default_flow_style": False}),
    "style/indicators": (["-", "--", "---", "--- a", "...", "?a", "a?", "? a", ":", ":a", "a:", "a: b", "#a", "a#", "a #b", ",", "a,b", "[]", "{}", "!", "%a", "@a", "`a", "=", "<<", "~", "a: ", "|", ">"], {"default_flow_style": False}),
    "style/indicators_flow": (["-", "--", "---", "?a", "a?", ":a", "a:", "a:b", "a#", "a,b", "a]b", "a}b", "=", "~", "http://x"], {"default_flow_style": True}),
    "style/blanks": ([" ", "  a", "a  ", "a\n", "\na", "\n", "\n\n", "a\n\nb", "a \nb", "a\n b", " \n", "\t\n"], {"default_flow_style": False}),
    "alias/dict": ("SHARED", {"default_flow_style": False}),
    "alias/flow": ("SHARED", {"default_flow_style": True}),
    "alias/order": ("ORDER", {"default_flow_style": False}),
    "alias/recursive": ("RECURSIVE", {}),
    "sls/state": ({"web": {"pkg.installed": [{"name": "nginx"}, {"version": "1.10"}], "file.managed": [{"mode": "0644"}, {"contents": "a\nb\n"}]}}, {"default_flow_style": False}),
    "sls/return": ({"minion": {"pkg_|-a_|-b_|-installed": {"result": True, "changes": {}, "duration": 12.345, "comment": "All specified packages are already installed", "__run_num__": 0}}}, {"default_flow_style": False}),
}

FILTER = [
    "",
    "plain",
    "it's",
    'say "x"',
    "back\\slash",
    "a\nb\n\nc\n",
    " lead and trail ",
    "é \u2028 \x85 \xa0 \ufeff \U0001f600",
    "\x00\x07\x1b\x7f\t\r",
    LONG * 3,
]
ENCODE = [None, True, 1, -1.5, 1e16, 10**20, "x'y", b"abc"]


def enc(value):
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, tuple):
        return ["tuple", [enc(item) for item in value]]
    if isinstance(value, list):
        return ["seq", [enc(item) for item in value]]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted(enc(item) for item in value)]
    if isinstance(value, dict):
        return ["map", [[enc(key), enc(item)] for key, item in value.items()]]
    if isinstance(value, datetime.datetime):
        return ["datetime", value.isoformat()]
    raise TypeError(type(value).__name__)


def load(case, function):
    try:
        value = function(case["yaml"])
        try:
            case["expected"] = enc(value)
        except RecursionError:
            case["expected"] = ["recursive"]
    except yaml.YAMLError as exc:
        case["error_type"] = type(exc).__name__
        case["problem"] = getattr(exc, "problem", None)
        case["context"] = getattr(exc, "context", None)
        mark = getattr(exc, "problem_mark", None)
        case["line"] = mark.line if mark else None
        case["column"] = mark.column if mark else None
        case["message"] = str(exc)
    except Exception as exc:  # noqa: BLE001
        case["error_type"] = type(exc).__name__
        case["message"] = str(exc)
    return case


PLAIN = {
    "plain/octal": "- 0644\n- 0755\n- -010\n- 0\n- 00\n- 0_7\n",
    "plain/duplicate": "a: 1\nb: 2\na: 3\n",
    "plain/merge": "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], q: 0}\nd: {<<: *a, x: 5}\n",
    "plain/list_key": "? [a]\n: b\n",
    "plain/omap": "!!omap [b: 1, a: 2]\n",
    "plain/omap_bad": "!!omap [b]\n",
    "plain/datetime": "- 2001-12-14 21:59:43\n- 2001-12-14t21:59:43.10\n",
    "plain/binary": "!!binary aGVsbG8=\n",
    "plain/binary_unpadded": "!!binary aGVsbG8\n",
    "plain/unicode_tag": "!!python/unicode x\n",
}


def salt_load(text):
    return yaml.load(text, Loader=lambda s: SaltYamlSafeLoader(s, dictclass=OrderedDict))


def plain_load(text):
    return yaml.load(text, Loader=salt.serializers.yaml.Loader)


def special(value):
    if value == "SHARED":
        return ["shared", ["a", "b"]], shared("a", "b")
    if value == "ORDER":
        one, two = [1], [2]
        return ["crossed"], [one, two, two, one]
    if value == "RECURSIVE":
        return ["loop"], recursive()
    return enc(value), value


def main(out):
    cases = [load({"name": n, "kind": "load", "yaml": t}, salt_load) for n, t in LOAD.items()]
    cases += [load({"name": n, "kind": "plain", "yaml": t}, plain_load) for n, t in PLAIN.items()]
    for name, (value, options) in DUMP.items():
        typed, value = special(value)
        case = {"name": name, "kind": "dump", "value": typed, "options": options}
        given = dict(options)
        if "version" in given:
            given["version"] = tuple(given["version"])
        case["expected"] = salt.utils.yaml.safe_dump(value, **given)
        cases.append(case)
    for text in FILTER:
        for name in ("yaml_dquote", "yaml_squote"):
            expected = getattr(salt.utils.yamlencoding, name)(text)
            cases.append({"name": name, "kind": "filter", "value": enc(text), "expected": expected})
    for value in ENCODE:
        expected = salt.utils.yamlencoding.yaml_encode(value)
        cases.append({"name": "yaml_encode", "kind": "filter", "value": enc(value), "expected": expected})
    with open(out, "w", encoding="utf-8") as handle:
        json.dump(cases, handle, indent=1, ensure_ascii=True)
        handle.write("\n")
    print(len(cases), "cases;", sum("error_type" in case for case in cases), "expect an error")


if __name__ == "__main__":
    main(sys.argv[1])
