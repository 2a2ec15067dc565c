"""Records how genuine Salt 3008 reads the arguments of functions.

    python record_args.py > args.json       (with a Python that has Salt)

Results are written as Python's repr, which `args.rs` compares with ours.
"""

import json
import sys

import salt.utils.args

CASES = []


def case(*args, no_parse=()):
    CASES.append((list(args), list(no_parse)))


# One argument each: scalars.
for text in """
5 -5 +5 0 00 007 0644 -0644 +0644 08 0x1F 0X1f 0b101 0o17 1_000 1__0 _1 1_ 12_34_ 0_1 1.5 .5 5. -1.5 1e3 1e+3 1.5e3
1.5e+3 1E3 .inf -.inf .INF .nan .NaN inf nan Infinity 1:30 1:30:45 190:20:30 12:30 0:0 1,000 1,2 100% $5
true True TRUE false False FALSE yes Yes YES no No NO on On ON off Off OFF y Y n N
null Null NULL ~ None none NONE nil
2024-01-01 2024-01-01T10:00:00 2024-01-01_10:00 10:30:00 2024-13-45 20240101 12/31/2024
20240101120000123456 20240101120000123456_77 123456789012345678901234567890 9223372036854775808 -9223372036854775809
a abc a:b a: :a a::b a.b a-b -a --a a/b /etc/hosts C:\\x *.conf * ** & && | || > < ! !! !a @ @a ` `a % %a ? ?a
- -- --- .... .. . ... , ; : = == =a a== [ ] { } ( ) ' " '' "" '' "a 'a a' a" \\ \\n \\t
# #a a#b a# 5# 5#6 [1]#x
[] {} [1] [1,2] [a,b] [a,[b]] {a:b} {a} {a,b} {a:1,b:2} {a:[1]} [] [,] {,} [1 {1 ]1 }1
!!str !!int !!float !!binary !!set !!null !!bool !foo
<< <<: & &a *a >- |- >a |a
é ünï 日本 ½ ² ٣ 🎉
""".split():
    case(text)
# One argument each: with blanks and other letters that do not print.
for text in [
    "", " ", "   ", "\t", "\n", "a\tb", "a\nb", "a\n", "a\rb", " 5", "5 ", " 5 ", " a ", "a b", "a: b", "a : b",
    "a:  b", "- a", "- a b", "[a, b]", "{a: b}", "{a: {b: [1, 2.5, null]}}", " {a: b}", " [1]", "[1] ", "{a: b} x",
    "[1, 2] x", "{'a': 1, \"b\": 'x y'}", '{"a": [1, "2", true, null]}', '{"a":1}', '{"a":"b"}', "['x', \"y\"]", "'5'", '"5"',
    "'a b'", '"a\\nb"', "'it''s'", "it's", 'say "hi"', "'a' b", "5 # five", "# five", " # x", "a # b", "[1] # x", "{a: 1} # x",
    "[a#b]", "{a: '#x'}", "yes # y", "5 #", "~ # x", "'a' # b", "!!str 5", "!!int '5'", "!!int x", "!!float 5", "!!binary aGk=", "!!set {a, b}",
    "!!python/name:os.system", "!!timestamp 2024-01-01", "!foo bar", "&a b", "*a", "[&a 1, *a]", "<<: {a: b}", "{<<: {a: 1}, b: 2}",
    "? a", "? a : b", "a, b", "a,b,c", "1, 2", "--- a", "--- 5", "a\n--- b", "... x", "%YAML 1.1", "%a b", "@a b", "`a b`",
    "| a", "> a", "|\n a", "salt '*' test.ping", "echo $HOME && ls | grep x > y", "G@os:Debian and not E@web.*", "{{ grains.id }}", "{% if x %}",
    "a=b", "a= b", "a =b", " a=b", "a==b", "a=", "a=b=c", "=b", "1a=b", "a1=b", "_a=b", "a.b=c", "a-b=c", "a:b=c", "a/b=c", "é=1", "٣a=1", "²=1", "a²=1",
    "a=5", "a=1_0", "a=yes", "a=None", "a=null", "a=''", 'a=""', "a=[1, 2]", "a={b: c}", "a={'b': 1}", "a=b: c", "a=- b", "a=#b", "a=b # c", "a= ",
    "a=\n", "a=b\n", "a=b\nc", "a=b\n\n", "a\n=b", "a=\tb", "__kwarg__=True", "a=20240101120000123456", "a='b=c'", "https://x.y/?a=b", "x=https://x.y/?a=b#c",
    "test=True", "pillar={\"a\": {\"b\": [1]}}", "FOO=bar", "-a=b", "--a=b", "a.=b", "a-=b", "a b=c", "mode=0644", "mode='0644'", "date=2024-01-01",
    "\u00a0", "\u2028x", "a\u0085b", "\x00", "\x07", "a\x1bb", "\ufeff5", "\U0001f389", "1 2", "0x", "0b2", "0o9", "1.2.3", "1..2", "1e", "e1", "+", "-0", "+.5", "1_000.5", "1e5_0",
    "99999999999999999999", "1" * 400, "a" * 3000, "[" * 30 + "]" * 30,
]:
    case(text)
# Several at once.
case()
case("a", "b=1", "c")
case("a=1", "a=2")
case("b=1", "a=2", "x")
case("20240101120000123456", "5", "jid=20240101120000123456")
case("a=5", "b=6", no_parse=["a"])
case("a=[1]", "[1]", no_parse=["a", "[1]"])
case("a=b\n", no_parse=["a"])
case("*", "pkg.install", "nginx", "refresh=True", "pkgs=[a, b]")

print("[")
print(
    ",\n".join(
        json.dumps(
            {"args": args, "no_parse": no_parse, "is": repr(salt.utils.args.parse_input(args, no_parse=no_parse))},
        )
        for args, no_parse in CASES
    )
)
print("]")
