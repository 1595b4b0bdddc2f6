//! Wrong scenarios: each is refused with its line, its column and a way out.

use std::path::Path;

use selvedge_scenarios::input::LoadError;
use selvedge_scenarios::load::parse;

const SOUND: &str = r#"{
  "schema_version": 1,
  "name": "four-procs",
  "machine": {"gemini": {"dims": [2, 2, 1]}},
  "transport": {"ugni": {}},
  "procs": {"count": 4},
  "workload": {"uniform": {"partners": 2, "messages": 8, "size": "1KiB"}},
  "faults": [
    {"loss": {"rate": "1%", "from": [0], "links": [[0, 1]]}},
    {"nic": {"at": "1us", "fault": "fail-send"}}
  ],
  "seeds": [1],
  "expect": {"failed": {"peer-died": {"min": 1, "max": 2}}},
  "explore": {"faults": {"loss": 1}}
}"#;

fn errors(text: &str) -> String {
    match parse(Path::new("x.json"), text.into()) {
        Ok(_) => String::new(),
        Err(LoadError::Unreadable(error)) => error.to_string(),
        Err(LoadError::Invalid(errors)) => {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn the_sound_one_is_sound() {
    assert_eq!(errors(SOUND), "");
}

#[test]
fn each_mistake_is_named_where_it_stands() {
    let script =
        r#"{"script": [{"proc": 0, "steps": [{"do": {"send": {"to": 0, "size": "8B"}}}]}]}"#;
    let uniform = r#"{"uniform": {"partners": 2, "messages": 8, "size": "1KiB"}}"#;
    for (old, new, expected) in [
        // The file as a whole.
        (
            "\"schema_version\": 1",
            "\"schema_version\": 2",
            "x.json:2:21: version 2 is not known here",
        ),
        (
            "\"schema_version\": 1",
            "\"schema_version\": \"1\"",
            "x.json:2:21: the version is a number",
        ),
        ("\"schema_version\": 1,", "", "x.json:1:1: key `schema_version` is missing"),
        (
            "\"transport\"",
            "\"tranpsort\"",
            "x.json:5:3: unknown key `tranpsort`, did you mean `transport`?",
        ),
        ("four-procs", "Four Procs", "x.json:3:11: a name is words of a-z"),
        (
            "\"seeds\": [1]",
            "\"seeds\": [1], \"seeds\": [2]",
            "x.json:12:17: key `seeds` is written twice",
        ),
        // Machines and transports.
        (
            "{\"gemini\": {\"dims\": [2, 2, 1]}}",
            "\"titn\"",
            "x.json:4:14: unknown machine `titn`, did you mean `titan`?",
        ),
        ("{\"gemini\": {\"dims\": [2, 2, 1]}}", "\"./none.json\"", "none.json: cannot be read"),
        ("[2, 2, 1]", "[1000, 1000, 1000]", "x.json:4:34: 1000 x 1000 x 1000 routers are too many"),
        ("[2, 2, 1]", "[2, 0, 1]", "x.json:4:34: 2 x 0 x 1 makes no routers"),
        (
            "{\"gemini\": {\"dims\": [2, 2, 1]}}",
            "{\"crossbar\": {\"nodes\": 0}}",
            "x.json:4:37: 0 makes no nodes",
        ),
        (
            "{\"ugni\": {}}",
            "{\"ugin\": {}}",
            "x.json:5:17: unknown word `ugin`, did you mean `ugni`?",
        ),
        (
            "{\"ugni\": {}}",
            "{\"ugni\": {\"no_such\": 1}}",
            "x.json:5:37: unknown tunable `no_such`",
        ),
        (
            "{\"ugni\": {}}",
            "{\"ugni\": {\"x\": 1.5}}",
            "x.json:5:31: expected a count, a quantity such as \"10us\", true or false, found number 1.5",
        ),
        // Procs.
        (
            "{\"count\": 4}",
            "{\"count\": 9}",
            "x.json:6:22: 9 procs do not fit: 8 nodes with 1 each hold 8",
        ),
        ("{\"count\": 4}", "{\"count\": 0}", "x.json:6:22: must be at least 1"),
        (
            "{\"count\": 4}",
            "{\"placement\": [0, 1, 2, 9]}",
            "x.json:6:36: there is no node 9: they are numbered 0 to 7",
        ),
        (
            "{\"count\": 4}",
            "{\"placement\": [0, 1, 2, 2]}",
            "x.json:6:36: node 2 holds more than 1: raise `per_node`",
        ),
        ("{\"count\": 4}", "{\"count\": 4, \"placement\": \"pakced\"}", "did you mean `packed`?"),
        ("{\"count\": 4}", "{\"count\": 4, \"placement\": [0]}", "places 1 procs, but there are 4"),
        // Workloads.
        ("\"1KiB\"", "1024", "x.json:7:66: 1024 is not an amount of data: write a unit: \"2KiB\""),
        (
            "\"1KiB\"",
            "\"1KB\"",
            "x.json:7:66: `1KB` is not an amount of data: write `KiB` for 1024",
        ),
        ("\"1KiB\"", "\"4GiB\"", "x.json:7:66: too long for one message"),
        ("\"partners\": 2", "\"partners\": 4", "x.json:7:40: must lie between 1 and 3"),
        (
            "\"messages\": 8",
            "\"messages\": 18446744073709551615",
            "x.json:7:55: too many messages in all",
        ),
        ("\"messages\": 8", "\"messages\": 0", "x.json:7:55: no message would be sent"),
        (uniform, script, "x.json:7:72: a proc does not connect to itself"),
        (uniform, r#"{"connect-storm": {"neighbours": "torus-62"}}"#, "did you mean `torus-26`?"),
        (
            uniform,
            r#"{"incast": {"target": 4, "messages": 1, "size": "8B"}}"#,
            "there is no proc 4",
        ),
        (uniform, "\"uniform\"", "x.json:7:15: `uniform` needs its settings"),
        // Faults.
        ("{\"rate\": \"1%\", ", "{", "x.json:9:14: say when: write one of `at`, `rate` and `when`"),
        (
            "{\"rate\": \"1%\", ",
            "{\"rate\": \"101%\", ",
            "x.json:9:23: `101%` is not a probability: write at most `100%`",
        ),
        (
            "\"from\": [0]",
            "\"from\": [4]",
            "x.json:9:38: there is no proc 4: they are numbered 0 to 3",
        ),
        ("\"from\": [0]", "\"from\": []", "x.json:9:37: an empty list strikes nobody"),
        ("[0, 1]]", "[0, 3]]", "x.json:9:52: no link joins routers 0 and 3"),
        (
            "fail-send",
            "fial-send",
            "x.json:10:36: unknown NIC fault `fial-send`, did you mean `fail-send`?",
        ),
        ("\"nic\"", "\"nik\"", "x.json:10:6: unknown word `nik`, did you mean `nic`?"),
        (
            "{\"nic\": {",
            "{\"crash\": {\"procs\": [0], \"rate\": \"1%\"}}, {\"nic\": {",
            "`crash` does not strike by chance: write `at` or `when`",
        ),
        // Seeds, expectations and bounds.
        ("[1],", "[],", "x.json:12:12: name at least one seed"),
        ("[1],", "{\"from\": 2, \"to\": 2},", "x.json:12:12: no seed lies there"),
        ("[1],", "[-1],", "x.json:12:13: invalid value: integer `-1`"),
        (
            "peer-died",
            "peer-dyed",
            "x.json:13:38: unknown reason `peer-dyed`, did you mean `peer-died`?",
        ),
        ("\"min\": 1", "\"min\": 3", "`min` is greater than `max`"),
        (
            "{\"loss\": 1}",
            "{\"los\": 1}",
            "x.json:14:33: unknown fault `los`, did you mean `loss`?",
        ),
    ] {
        assert!(SOUND.contains(old), "`{old}` is nowhere in the sound one");
        let errors = errors(&SOUND.replacen(old, new, 1));
        assert!(errors.contains(expected), "{new}\nsays\n{errors}\nand should say\n{expected}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = SOUND.replace("\"from\": [0]", "\"from\": [4]").replace("[1],", "[],");
    assert_eq!(errors(&text).lines().count(), 2);
}

#[test]
fn any_damage_is_survived() {
    for at in 0..SOUND.len() {
        let (before, after) = SOUND.split_at(at);
        for insert in ["", "\"", "{", "]", "9", "\\", ",", "null"] {
            let mut rest = after.chars();
            rest.next();
            let _ = errors(&format!("{before}{insert}{}", rest.as_str()));
        }
        let _ = errors(before);
    }
}
