"""What scripts and modules take from `salt.*`: each line is asked of the genuine package and of ours.

Run with a folder of its own and with one of the two packages importable; prints a JSON list with an
answer per line, or the class of the exception.
"""

import base64
import importlib
import json
import os
import re
import sys
import warnings

warnings.simplefilter("ignore")
HERE = sys.argv[1]
os.chdir(HERE)

LINES = r'''
salt.utils.args.parse_input(["a", "b=1", "c: 2", "d=[1, 2]", "-1", "1.5", "#x", "e=#y"], condition=False)
salt.utils.args.parse_input(["a=b", "c"], no_parse=["a"])
salt.utils.args.yamlify_arg("{a: 1}")
salt.utils.args.yamlify_arg("1_000")
salt.utils.args.yamlify_arg("2019-01-01")
salt.utils.args.yamlify_arg("# comment")
salt.utils.args.yamlify_arg("a:")
salt.utils.args.clean_kwargs(a=1, __pub_x=2)
salt.utils.args.invalid_kwargs({"a": 1}, False)
salt.utils.args.shlex_split("a 'b c'")
salt.utils.args.split_input("a,b,c")
salt.utils.args.parse_kwarg("a=b")
salt.utils.args.parse_kwarg("a b")
salt.utils.args.parse_function("f(1, b=2)")
salt.utils.args.test_mode(test=True)
salt.utils.args.test_mode(Test="yes")
list(salt.utils.args.get_function_argspec(lambda a, b=1, *c, **d: None))
salt.utils.args.arg_lookup(lambda a, b=1, *c, **d: None)
salt.utils.args.format_call(lambda a, b=1: None, {"a": 1, "b": 2})
salt.utils.args.format_call(lambda a, b=1, **kw: None, {"a": 1, "c": 2})
salt.utils.args.format_call(lambda a, b=1: None, {"a": 1, "c": 2}, expected_extra_kws=("c",))
salt.utils.args.format_call(lambda a, b=1: None, {"b": 1})
salt.utils.args.prepare_kwargs({"a": 1}, ["a"])
salt.utils.compat.cmp(1, 2)
salt.utils.compat.cmp({"a": 1}, {"a": 1})
callable(salt.utils.context.func_globals_inject)
salt.utils.data.traverse_dict({"a": {"b": 1}}, "a:b")
salt.utils.data.traverse_dict({"a": {"b": 1}}, "a:c", 7)
salt.utils.data.traverse_dict_and_list({"a": [{"b": 1}, {"c": 2}]}, "a:c")
salt.utils.data.traverse_dict_and_list({"a": [1, 2]}, "a:1")
salt.utils.data.traverse_dict_and_list({"a/b": 1, "a": {"b": 2}}, "a/b", delimiter="/")
salt.utils.data.subdict_match({"a": {"b": "c"}}, "a:b:c")
salt.utils.data.subdict_match({"a": ["b", "c"]}, "a:c")
salt.utils.data.subdict_match({"a": "bcd"}, "a:b*")
salt.utils.data.subdict_match({"a": "bcd"}, "a:b.d", regex_match=True)
salt.utils.data.subdict_match({"a": "b"}, "a:B", exact_match=True)
salt.utils.data.compare_dicts({"a": 1, "b": 2}, {"a": 2, "c": 3})
salt.utils.data.compare_lists([1, 2], [2, 3])
salt.utils.data.decode({b"a": [b"b", (b"c",)]})
salt.utils.data.decode({b"a": (b"b",)}, preserve_tuples=True)
salt.utils.data.decode([b"\xff"], keep=True)
salt.utils.data.encode({"a": ["b"]})
salt.utils.data.filter_by({"a": 1, "default": 2}, "b", {"x": "y"})
salt.utils.data.filter_by({"Debian": {"a": 1}}, "os", {"os": "Debian"}, merge={"b": 2})
salt.utils.data.filter_by({"d": {"a": 1}}, "os", {"os": "x"}, default="d", base="d")
salt.utils.data.flatten([1, [2, [3]]])
salt.utils.data.flatten([1, [2, [3]]], levels=1)
salt.utils.data.flatten([1, None, [2]], preserve_nulls=True)
salt.utils.data.repack_dictlist([{"a": 1}, "b"])
salt.utils.data.repack_dictlist("- a: 1")
salt.utils.data.is_dictlist([{"a": 1}])
salt.utils.data.is_list([1]), salt.utils.data.is_list((1,)), salt.utils.data.is_iter("a"), salt.utils.data.is_iter([1])
salt.utils.data.is_true("yes"), salt.utils.data.is_true("True"), salt.utils.data.is_true(1), salt.utils.data.is_true("1"), salt.utils.data.is_true(None), salt.utils.data.is_true("no")
salt.utils.data.mysql_to_dict(["+----+------+", "| id | name |", "+----+------+", "| 1 | x |", "+----+------+"], "name")
salt.utils.data.simple_types_filter({"a": object, "b": [1, {2: 3}]})
salt.utils.data.stringify([1, "a", b"c"])
salt.utils.data.json_query({"a": [1, 2]}, "a[1]")
salt.utils.data.filter_falsey({"a": None, "b": [], "c": {"d": ""}, "e": 1}, recurse_depth=2)
salt.utils.data.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 3})
salt.utils.data.recursive_diff([1, 2], [1, 3])
salt.utils.data.get_value({"a": [{"b": 1}, {"b": 2}]}, "a:*:b")
salt.utils.data.exactly_one([0, 1, 0]), salt.utils.data.exactly_n([1, 1], 2)
salt.utils.data.to_lowercase({"A": ["B"]}), salt.utils.data.to_uppercase(["a", {"b": "c"}])
salt.utils.data.CaseInsensitiveDict({"A": 1})["a"]
salt.utils.data.CaseInsensitiveDict({"A": 1}).get("a")
list(salt.utils.data.CaseInsensitiveDict({"A": 1}))
salt.utils.data.sorted_ignorecase(["b", "A"])
sorted(salt.utils.data.shuffle([1, 2, 3])), salt.utils.data.sample([1], 1)
salt.utils.dateutils.date_cast(0).year
salt.utils.dateutils.strftime("2020-01-02", "%d.%m.%Y")
salt.utils.dateutils.total_seconds(__import__("datetime").timedelta(1, 2))
salt.utils.decorators.ensure_unicode_args(lambda a: a)(b"x")
salt.utils.dictdiffer.deep_diff({"a": {"b": 1}}, {"a": {"b": 2}})
salt.utils.dictdiffer.diff({"a": 1}, {"a": 2}).changed()
salt.utils.dictdiffer.DictDiffer({"a": 1, "b": 2}, {"b": 3, "c": 4}).added()
salt.utils.dictdiffer.DictDiffer({"a": 1, "b": 2}, {"b": 3, "c": 4}).removed()
salt.utils.dictdiffer.DictDiffer({"a": 1, "b": 2}, {"b": 3, "c": 4}).changed()
salt.utils.dictdiffer.DictDiffer({"a": 1, "b": 2}, {"b": 2, "c": 4}).unchanged()
salt.utils.dictdiffer.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 1}).diffs
salt.utils.dictdiffer.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 1}).changes_str
salt.utils.dictdiffer.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 1}).added()
salt.utils.dictdiffer.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 1}).changed()
salt.utils.dictdiffer.recursive_diff({"a": {"b": 1}}, {"a": {"b": 2}, "c": 1}).new_values
salt.utils.dictupdate.update({"a": {"b": 1}}, {"a": {"c": 2}})
salt.utils.dictupdate.update({"a": [1]}, {"a": [2]}, merge_lists=True)
salt.utils.dictupdate.update({"a": {"b": 1}}, {"a": {"c": 2}}, recursive_update=False)
salt.utils.dictupdate.merge({"a": [1]}, {"a": [1, 2]}, strategy="recurse", merge_lists=True)
salt.utils.dictupdate.merge({"a": {"x": 1}}, {"a": {"y": 2}}, strategy="overwrite")
salt.utils.dictupdate.merge({"a": {"x": 1}}, {"a": {"y": 2}}, strategy="list")
salt.utils.dictupdate.merge({"a": {"x": 1}}, {"a": {"__": "remove", "y": 2}}, strategy="aggregate")
salt.utils.dictupdate.merge_recurse({"a": {"b": 1}}, {"a": {"c": 2}})
salt.utils.dictupdate.merge_list({"a": 1}, {"a": 2})
salt.utils.dictupdate.merge_aggregate({"a": 1}, {"a": 2})
salt.utils.dictupdate.set_dict_key_value({}, "a:b:c", 1)
salt.utils.dictupdate.ensure_dict_key({}, "a:b")
salt.utils.dictupdate.update_dict_key_value({"a": {"b": 1}}, "a", {"c": 2})
salt.utils.dictupdate.append_dict_key_value({"a": [1]}, "a", 2)
salt.utils.dictupdate.extend_dict_key_value({"a": [1]}, "a", [2, 3])
salt.utils.doc.strip_rst({"a": "one ``two``\n\n.. code-block:: bash\n\n    x\n", "b": None})
salt.utils.doc.parse_docstring("one\n\n:param x: y\n")
salt.utils.error.raise_error("ValueError", ("x",))
salt.utils.error.raise_error("SaltInvocationError", ("x",))
salt.utils.error.raise_error(message="x")
salt.utils.event.tagify("a", "minion")
salt.utils.event.tagify(["a", "b"], "job")
salt.utils.event.tagify("a")
salt.utils.event.SALTEVENT, salt.utils.event.TAGPARTER, salt.utils.event.TAGEND
salt.utils.files.normalize_mode("644"), salt.utils.files.normalize_mode(644), salt.utils.files.normalize_mode("0o755"), salt.utils.files.normalize_mode(None), salt.utils.files.normalize_mode("01777")
salt.utils.files.safe_filename_leaf("a:b/c*d")
salt.utils.files.safe_filepath("/a:b/c*d")
salt.utils.files.human_size_to_bytes("5M"), salt.utils.files.human_size_to_bytes("1.5G"), salt.utils.files.human_size_to_bytes("x")
salt.utils.files.guess_archive_type("a.tar.gz"), salt.utils.files.guess_archive_type("a.zip"), salt.utils.files.guess_archive_type("x")
salt.utils.files.st_mode_to_octal(0o100644)
salt.utils.files.is_fcntl_available()
salt.utils.files.mkstemp()[:5], os.path.basename(salt.utils.files.mkstemp()).startswith(salt.utils.files.TEMPFILE_PREFIX)
salt.utils.files.fopen("x", "w").write("text\n"), salt.utils.files.is_text("x"), salt.utils.files.is_binary("x"), salt.utils.files.is_empty("x")
sorted(salt.utils.files.list_files("."))[:1]
salt.utils.files.fopen("y", "w").close(), salt.utils.files.is_empty("y")
salt.utils.files.rm_rf("y"), os.path.exists("y")
salt.utils.files.copyfile("x", HERE + "/z"), open("z").read()
salt.utils.files.copyfile("nothing", HERE + "/z")
salt.utils.files.rename("z", "w"), os.path.exists("w")
salt.utils.files.safe_rm("nothing")
salt.utils.files.get_umask() == os.umask(os.umask(0o022))
salt.utils.files.VALID_PROTOS, salt.utils.files.LOCAL_PROTOS, salt.utils.files.REMOTE_PROTOS
salt.utils.files.HASHES
[sorted(names) for _, _, names in salt.utils.files.safe_walk(".")]
salt.utils.functools.alias_function(len, "other").__name__
salt.utils.hashutils.sha256_digest("x"), salt.utils.hashutils.md5_digest("x"), salt.utils.hashutils.sha1_digest("x"), salt.utils.hashutils.sha512_digest("x")
salt.utils.hashutils.get_hash("x"), salt.utils.hashutils.get_hash("x", "md5")
salt.utils.hashutils.get_hash("x", "none")
salt.utils.hashutils.base64_b64encode("x"), salt.utils.hashutils.base64_b64decode("eA==")
salt.utils.hashutils.base64_encodestring("x"), salt.utils.hashutils.base64_decodestring("eA==")
salt.utils.hashutils.hmac_signature("x", "k", "vjBPIBK7LK8Hm1/+5xf0RfBf3T/2nDG0l8cPmtzPwr4=")
salt.utils.hashutils.hmac_compute("x", "k")
salt.utils.hashutils.random_hash(8).isalnum()
salt.utils.immutabletypes.freeze({"a": [1]})["a"][0]
list(salt.utils.itertools.split("a b  c")), list(salt.utils.itertools.split("a,b", ","))
salt.utils.jid.is_jid("20200101000000000000"), salt.utils.jid.is_jid("x"), salt.utils.jid.is_jid(1)
salt.utils.jid.jid_to_time("20200101020304000005")
salt.utils.jid.format_jid_instance("20200101020304000005", {"fun": "f", "arg": [1], "tgt": "*", "tgt_type": "glob", "user": "u", "ret": ""})
salt.utils.json.loads('{"a": 1}'), salt.utils.json.dumps({"a": "ä"}), salt.utils.json.find_json("x\n{\"a\": 1}\n")
salt.utils.json.find_json("none")
salt.utils.json.import_json().__name__ in ("json", "ujson")
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}], [{"key": 1, "v": 3}, {"key": 2}], "key").diffs
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}, {"key": 3}], [{"key": 1, "v": 3}], "key").diffs
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}, {"key": 3}], [{"key": 1, "v": 3}], "key").changed
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}, {"key": 3}], [{"key": 1, "v": 3}], "key").removed
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}, {"key": 3}], [{"key": 1, "v": 3}], "key").new_values
salt.utils.listdiffer.list_diff([{"key": 1, "v": 2}, {"key": 3}], [{"key": 1, "v": 3}], "key").old_values
salt.utils.locales.normalize_locale("en_US.utf8"), salt.utils.locales.split_locale("en_US.UTF-8@x y"), salt.utils.locales.join_locale({"language": "en", "territory": "US", "codeset": "UTF-8", "modifier": "", "charmap": ""})
salt.utils.network.is_ip("1.2.3.4"), salt.utils.network.is_ipv4("::1"), salt.utils.network.is_ipv6("::1"), salt.utils.network.is_ip("x")
salt.utils.network.is_subnet("10.0.0.0/8"), salt.utils.network.is_ipv4_subnet("10.0.0.0/8"), salt.utils.network.is_ipv6_subnet("fe80::/10"), salt.utils.network.is_subnet("x")
salt.utils.network.in_subnet("10.0.0.0/8", "10.1.1.1"), salt.utils.network.in_subnet("10.0.0.0/8", ["1.1.1.1", "10.0.0.1"])
salt.utils.network.calc_net("10.1.2.3", "255.255.0.0"), salt.utils.network.calc_net("10.1.2.3/24")
salt.utils.network.cidr_to_ipv4_netmask(20), salt.utils.network.cidr_to_ipv4_netmask("x"), salt.utils.network.get_net_size("255.255.255.0")
salt.utils.network.natural_ipv4_netmask("10.0.0.1"), salt.utils.network.natural_ipv4_netmask("192.168.1.1", "netmask"), salt.utils.network.rpad_ipv4_network("10.0")
salt.utils.network.is_loopback("127.0.0.1"), salt.utils.network.is_private("10.0.0.1")
salt.utils.network.parse_host_port("a:1"), salt.utils.network.parse_host_port("[::1]:5"), salt.utils.network.parse_host_port("a")
salt.utils.network.parse_host_port("a:x")
salt.utils.network.ip_bracket("::1"), salt.utils.network.ip_bracket("1.2.3.4"), salt.utils.network.mac2eui64("00:11:22:33:44:55"), salt.utils.network.mac2eui64("00:11:22:33:44:55", "fe80::/64")
salt.utils.network.network_hosts("10.0.0.0/30"), salt.utils.network.network_size("10.0.0.0/30")
salt.utils.network.filter_by_networks(["10.0.0.1", "1.1.1.1"], ["10.0.0.0/8"])
salt.utils.network.ipaddr("10.0.0.1"), salt.utils.network.ipv4(["10.0.0.1", "::1"]), salt.utils.network.ipv6(["10.0.0.1", "::1"])
salt.utils.network.sanitize_host("a_b.c!d"), salt.utils.network.sanitize_host("a_b.c!d", underscore_ok=True)
salt.utils.network.hex2ip("0100007F", invert=True), salt.utils.network.hex2ip("7F000001")
salt.utils.network.isportopen("127.0.0.1", 1) != 0, salt.utils.network.isportopen("127.0.0.1", 99999)
len(salt.utils.network.gen_mac("52:54:00")), salt.utils.network.gen_mac("52:54:00")[:8]
salt.utils.network.mac_str_to_bytes("00:11:22:33:44:55").hex()
salt.utils.network.host_to_ips("127.0.0.1"), salt.utils.network.ip_to_host("127.0.0.1") is not None
salt.utils.odict.OrderedDict([("a", 1)])["a"]
salt.utils.path.which("sh") is not None, salt.utils.path.which("no-such-program"), salt.utils.path.which_bin(["no-such", "sh"]) is not None, salt.utils.path.which("/bin/sh")
salt.utils.path.join("a", "/b"), salt.utils.path.join("/a", "b", "c"), salt.utils.path.join("/"), salt.utils.path.join("", "a")
salt.utils.path.sanitize_win_path("a:b"), salt.utils.path.safe_path("/x", "/y"), salt.utils.path.safe_path("/y/x", "/y")
[sorted(names) for _, _, names in salt.utils.path.os_walk("nothing")]
salt.utils.path.readlink("nothing")
salt.utils.path.expand("~") == os.path.expanduser("~")
salt.utils.path.check_target("http://x"), salt.utils.path.check_target("/tmp")
salt.utils.platform.is_linux(), salt.utils.platform.is_windows(), salt.utils.platform.is_darwin(), salt.utils.platform.is_freebsd(), salt.utils.platform.is_proxy(), salt.utils.platform.is_sunos(), salt.utils.platform.is_aix(), salt.utils.platform.is_aarch64() == (os.uname().machine == "aarch64")
salt.utils.pycrypto.gen_hash("ab", "pw", "sha512")
salt.utils.pycrypto.gen_hash("abcdefgh", "pw", "sha256")
salt.utils.pycrypto.gen_hash(password="pw")[:3]
salt.utils.pycrypto.gen_hash("a", "pw", "none")
len(salt.utils.pycrypto.secure_password()), len(salt.utils.pycrypto.secure_password(8)), salt.utils.pycrypto.secure_password(6, chars="ab").strip("ab"), salt.utils.pycrypto.secure_password(30, lowercase=True, uppercase=False, digits=False, punctuation=False, whitespace=False, printable=False).islower()
salt.utils.stringutils.to_bytes("ä"), salt.utils.stringutils.to_str(b"a"), salt.utils.stringutils.to_unicode(b"a"), salt.utils.stringutils.to_num("1"), salt.utils.stringutils.to_num("1.5"), salt.utils.stringutils.to_num("x"), salt.utils.stringutils.to_none(""), salt.utils.stringutils.to_none("a")
salt.utils.stringutils.to_str(1)
salt.utils.stringutils.to_bytes(1)
salt.utils.stringutils.is_quoted('"a"'), salt.utils.stringutils.dequote('"a"'), salt.utils.stringutils.dequote("a"), salt.utils.stringutils.is_hex("ff"), salt.utils.stringutils.is_hex("x"), salt.utils.stringutils.contains_whitespace("a b"), salt.utils.stringutils.is_binary("a\0"), salt.utils.stringutils.is_binary("a"), salt.utils.stringutils.human_to_bytes("1K"), salt.utils.stringutils.human_to_bytes("1.5 MB"), salt.utils.stringutils.human_to_bytes("5", default_unit="G"), salt.utils.stringutils.human_to_bytes("1MiB", handle_metric=True), salt.utils.stringutils.human_to_bytes("1MB", handle_metric=True)
salt.utils.stringutils.expr_match("abc", "a*"), salt.utils.stringutils.expr_match("abc", "a.c"), salt.utils.stringutils.expr_match("abc", "b"), salt.utils.stringutils.expr_match("a", "["), salt.utils.stringutils.check_whitelist_blacklist("a", ["a*"], ["ab"]), salt.utils.stringutils.check_whitelist_blacklist("ab", None, ["ab"]), salt.utils.stringutils.check_whitelist_blacklist("x", ["a"]), salt.utils.stringutils.check_include_exclude("a", ["a"], ["b"])
salt.utils.stringutils.get_diff("a\n", "b\n"), salt.utils.stringutils.get_diff(["a\n"], ["b\n"])
salt.utils.stringutils.get_context("a\nb\nc\nd\ne\n", 3, num_lines=1)
salt.utils.stringutils.build_whitespace_split_regex("a b")
len(salt.utils.stringutils.random()), len(salt.utils.stringutils.random(size=5))
salt.utils.stringutils.camel_to_snake_case("camelCase"), salt.utils.stringutils.snake_to_camel_case("snake_case"), salt.utils.stringutils.snake_to_camel_case("snake_case", uppercamel=True), salt.utils.stringutils.print_cli
salt.utils.systemd.booted({"salt.utils.systemd.booted": True}), salt.utils.systemd.offline({"salt.utils.systemd.offline": False}), salt.utils.systemd.version({"salt.utils.systemd.version": 230}), salt.utils.systemd.has_scope({"salt.utils.systemd.version": 230, "salt.utils.systemd.booted": True})
salt.utils.timeutil.get_timestamp_at("15:30") > 0
salt.utils.url.parse("salt://a?saltenv=b"), salt.utils.url.parse("salt://a"), salt.utils.url.parse("x"), salt.utils.url.create("a b", "c"), salt.utils.url.create("a"), salt.utils.url.is_escaped("salt://|a"), salt.utils.url.strip_proto("http://a"), salt.utils.url.add_env("salt://a", "x"), salt.utils.url.validate("salt://a", ["salt"]), salt.utils.url.unescape("|a"), salt.utils.url.escape("a?b"), salt.utils.url.split_env("salt://a?saltenv=x"), salt.utils.url.add_http_basic_auth("https://a", "u", "p"), salt.utils.url.redact_http_basic_auth("x https://u:p@a")
salt.utils.user.get_user(), salt.utils.user.get_uid("root"), salt.utils.user.get_uid("nobody-there"), salt.utils.user.get_group_list("root"), salt.utils.user.get_gid("root"), salt.utils.user.get_group_dict("root"), salt.utils.user.get_gid_list("root"), salt.utils.user.get_default_group("root"), salt.utils.user.get_specific_user()
salt.utils.validate.net.ipv4_addr("1.2.3.4"), salt.utils.validate.net.ipv4_addr("x"), salt.utils.validate.net.ipv6_addr("::1"), salt.utils.validate.net.mac("00:11:22:33:44:55"), salt.utils.validate.net.netmask("255.255.0.0"), salt.utils.validate.net.netmask("255.0.255.0"), salt.utils.validate.net.ipv4_addr("1.2.3.4/24"), salt.utils.validate.net.mac("x")
salt.utils.versions.version_cmp("1.2", "1.10"), salt.utils.versions.version_cmp("2.0", "1.0"), salt.utils.versions.compare("1.2", ">=", "1.1"), salt.utils.versions.compare("1", "==", "1"), salt.utils.versions.LooseVersion("1.2") < salt.utils.versions.LooseVersion("1.10"), str(salt.utils.versions.LooseVersion("1.2a")), salt.utils.versions.Version("1.0") < salt.utils.versions.Version("1.1")
salt.utils.xmlutil.to_dict(__import__("xml.etree.ElementTree").etree.ElementTree.fromstring("<a b='c'><d>e</d><d>f</d></a>"))
salt.utils.xmlutil.to_dict(__import__("xml.etree.ElementTree").etree.ElementTree.fromstring("<a b='c'><d>e</d></a>"), True)
salt.utils.yaml.safe_load("a: [1, {b: c}]"), salt.utils.yaml.safe_load("- x\n"), salt.utils.yaml.safe_dump({"b": 1, "a": [1, 2]}), salt.utils.yaml.safe_dump({"a": "ä"}), salt.utils.yaml.dump({"b": 1, "a": {"c": "d"}}, default_flow_style=False)
salt.utils.yaml.safe_load("a: {")
salt.utils.yaml.load("a: 0o17\nb: 017\nc: 2020-01-01\nd: yes\ne: 1:30\n")
salt.utils.yaml.safe_load("a: 1\na: 2\n")
salt.utils.yaml.load("a: 1\na: 2\n", Loader=salt.utils.yaml.SaltYamlSafeLoader)
salt.utils.yamlloader.load("a: 1\n", Loader=salt.utils.yamlloader.SaltYamlSafeLoader)
salt.utils.yamldumper.dump({"a": salt.utils.odict.OrderedDict([("z", 1), ("b", 2)])}, Dumper=salt.utils.yamldumper.SafeOrderedDumper, default_flow_style=False)
salt.serializers.yaml.serialize({"a": 1}), salt.serializers.yaml.deserialize("a: 1"), salt.serializers.json.serialize({"a": 1}), salt.serializers.json.deserialize('{"a": 1}'), salt.serializers.msgpack.deserialize(salt.serializers.msgpack.serialize({"a": 1}))
salt.serializers.yaml.deserialize("a: {")
salt.serializers.json.deserialize("{")
salt.payload.loads(salt.payload.dumps({"a": [1, "b", None, 1.5, True]})), salt.payload.dumps({"a": 1})
salt.payload.package(1), salt.payload.unpackage(salt.payload.package(1))
salt.defaults.DEFAULT_TARGET_DELIM, salt.defaults.exitcodes.EX_OK, salt.defaults.exitcodes.EX_GENERIC, salt.defaults.exitcodes.EX_USAGE, salt.defaults.exitcodes.EX_TEMPFAIL, salt.defaults.exitcodes.EX_SOFTWARE
str(salt.exceptions.CommandExecutionError("x", info={"a": 1})), salt.exceptions.CommandExecutionError("x", info=["a", "b"]).info, str(salt.exceptions.CommandExecutionError("x", info=["a", "b"]))
salt.exceptions.SaltException("x").message, salt.exceptions.SaltException("x").strerror, salt.exceptions.SaltException("x").pack()
str(salt.exceptions.SaltRenderError("x", 2, "a\nb\nc\nd")), str(salt.exceptions.TimedProcTimeoutError("x")), str(salt.exceptions.SaltReqTimeoutError("x"))
sorted(cls.__name__ for cls in vars(salt.exceptions).values() if isinstance(cls, type) and issubclass(cls, salt.exceptions.CommandExecutionError) and cls.__name__ in ("CommandExecutionError", "CommandNotFoundError", "ArgumentValueError", "CheckError", "InvalidConfigError", "LoaderError", "MinionError"))
[issubclass(getattr(salt.exceptions, name), salt.exceptions.SaltException) for name in "SaltInvocationError SaltClientError SaltRenderError SaltSystemExit SaltCloudException PkgParseError CommandNotFoundError FileserverConfigError AuthenticationError TokenAuthenticationError EauthAuthenticationError PillarRenderError GitLockError FileLockError SaltDaemonNotRunning SaltRunnerError SaltWheelError SaltMasterError SaltConfigurationError SaltDeserializationError SaltSyndicMasterError SaltCloudNotFound SaltCloudConfigError MissingSmb PublishError MinionError LoaderError".split()]
salt.exceptions.VMwareApiError("x").__class__.__mro__[1].__name__, salt.exceptions.TemplateError("x").args, salt.exceptions.InvalidEntityError("x").args, salt.exceptions.SaltClientTimeout("x").args
os.path.basename(salt.crypt.write_keys(HERE, "one", 2048)), [key.split("\n")[0] for key in salt.crypt.gen_keys(2048)]
sorted(name for name in os.listdir(".") if name.startswith("one.")), oct(os.stat("one.pem").st_mode & 0o777), open("one.pem").readline().strip(), open("one.pub").readline().strip()
salt.crypt.verify_signature("one.pub", b"text", salt.crypt.sign_message("one.pem", b"text")), salt.crypt.verify_signature("one.pub", b"other", salt.crypt.sign_message("one.pem", b"text")), len(salt.crypt.sign_message("one.pem", b"text"))
salt.crypt.verify_signature("one.pub", b"text", salt.crypt.sign_message("one.pem", b"text", algorithm="PKCS1v15-SHA224"), algorithm="PKCS1v15-SHA224"), salt.crypt.verify_signature("one.pub", b"text", salt.crypt.sign_message("one.pem", b"text", algorithm="PKCS1v15-SHA224"))
salt.crypt.sign_message("one.pem", b"text", algorithm="none")
salt.crypt.clean_key(open("one.pub").read() + "\n").startswith("-----BEGIN"), salt.crypt.clean_key(" a \r\n b ")
salt.crypt.PublicKey.from_file("one.pub").verify(b"text", salt.crypt.PrivateKey.from_file("one.pem").sign(b"text"))
salt.crypt.PrivateKey.from_file("one.pem").decrypt(salt.crypt.PublicKey.from_file("one.pub").encrypt(b"secret"))
salt.crypt.Crypticle({}, KEY).loads(salt.crypt.Crypticle({}, KEY).dumps({"a": [1]}))
len(salt.crypt.Crypticle.generate_key_string()), salt.crypt.Crypticle({}, KEY).decrypt(salt.crypt.Crypticle({}, KEY).encrypt(b"x"))
salt.crypt.Crypticle({}, KEY).decrypt(b"x" * 64)
salt.cache.factory({"cache": "localfs", "cachedir": HERE}).store("bank/sub", "key", {"a": 1})
salt.cache.factory({"cache": "localfs", "cachedir": HERE}).fetch("bank/sub", "key"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).fetch("bank/sub", "none"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).list("bank"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).list("bank/sub"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).list("none"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).contains("bank/sub", "key"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).contains("bank/sub"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).contains("bank/sub", "none"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).updated("bank/sub", "none"), salt.cache.factory({"cache": "localfs", "cachedir": HERE}).updated("bank/sub", "key") > 0
sorted(os.path.join(folder, name) for folder, _, names in os.walk("bank") for name in names), open("bank/sub/key.p", "rb").read()
salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).cache("bank/sub", "made", lambda **given: [sorted(given)], loop_fun=lambda one: one + ["x"], expire=60, a=1)
salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).flush("bank/sub", "key"), salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).flush("bank/sub", "key"), salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).flush("bank"), os.path.exists("bank")
salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).store("b", "short", 1, expires=-5), salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).fetch("b", "short")
salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).store("b", "long", [1], expires=60), salt.cache.Cache({"cache": "localfs", "cachedir": HERE}).fetch("b", "long")
salt.template.check_render_pipe_str("jinja|yaml", {"jinja": 1, "yaml": 2}, None, None), salt.template.check_render_pipe_str("jinja|none", {"jinja": 1, "yaml": 2}, None, None), salt.template.template_shebang(":string:", {"jinja": 1, "yaml": 2}, "jinja|yaml", None, None, "#!yaml\na: 1")
salt.utils.odict.OrderedDict is dict or salt.utils.yaml.safe_dump({"z": {"y": 1, "b": "1"}, "a": None, "c": "true", "d": "2020-01-01", "e": [[], {}]}), salt.utils.yaml.safe_dump([{"a": 1}, {"b": [1]}], default_flow_style=False)
salt.features.features.get("x", 5)
salt.version.__version__.split(".")[0].isdigit(), salt.version.SaltStackVersion(3006, 1) < salt.version.SaltStackVersion(3007), salt.version.SaltStackVersion.from_name("Sulfur").major, str(salt.version.SaltStackVersion(3006, 1)), salt.version.SaltStackVersion.parse("v3006.1").info
'''

KEY = base64.b64encode(bytes(range(56))).decode()


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(one) for one in value), key=str)
    if isinstance(value, bytes):
        return ["bytes", value.decode("latin-1")]
    if callable(value):
        return "callable"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return "{} {}".format(type(value).__name__, value)


def answer(line):
    scope = {"os": os, "HERE": HERE, "KEY": KEY}
    for name in sorted(set(re.findall(r"\bsalt(?:\.[a-z_]\w*)+", line))):
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            try:
                importlib.import_module(".".join(parts[:end]))
                break
            except ImportError:
                continue
    import salt

    scope["salt"] = salt
    try:
        return plain(eval(line, scope))
    except BaseException as error:
        return "raises " + type(error).__name__


print(json.dumps([[line, answer(line)] for line in LINES.strip().splitlines()]))
