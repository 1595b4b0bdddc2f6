//! The house rules that neither the compiler nor clippy knows, read off the source tree.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the tree: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

/// Lines that a file may have without saying why it has more.
const LINES_MAX: usize = 800;

/// This file names what it bans.
const SELF: &str = "proptests/tests/tidy.rs";

/// Files of `core` that may compute with floating point, and why they need to.
const FLOATS: &[(&str, &str)] =
    &[("core/src/rma.rs", "Aries does IEEE 754 atomics, one rounding each: the same everywhere")];

/// Files of `sim` that may have a hash map, since nothing ever walks it, and why they need one.
const HASH_MAPS: &[(&str, &str)] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files of the tree that people write, in the order of their paths.
fn tree() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), "", &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(files.iter().any(|file| file.path == SELF), "this is not the source tree");
    files
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    const NOT_WRITTEN: &[&str] = &[".git", "target", "proptest-regressions", "Cargo.lock"];
    let entries = fs::read_dir(folder).expect("a folder of the tree can be read");
    for entry in entries {
        let entry = entry.expect("an entry of the tree can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if NOT_WRITTEN.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File { path, text });
        }
    }
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(&format!("{folder}/")))
    }

    /// Its lines of code: comments are left out, and so is what strings and characters say.
    fn code(&self) -> Vec<String> {
        blanked(&self.text).lines().map(str::to_owned).collect()
    }

    fn place(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }

    /// Where one of `words` stands in its code.
    fn uses(&self, words: &[&str]) -> Vec<String> {
        let code = self.code();
        let lines = code.iter().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let here = words.iter().filter(|word| has_word(line, word));
            here.map(move |word| self.place(at, &format!("`{word}`")))
        });
        found.collect()
    }
}

/// `text` with comments and the insides of literals taken out, line by line as before.
fn blanked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            raw_string(rest)
        } else if c == '"' {
            string(rest)
        } else if rest.starts_with("'\\") {
            rest.char_indices()
                .skip(3)
                .find(|&(_, c)| c == '\'')
                .map_or(rest.len(), |(at, _)| at + 1)
        } else if c == '\'' && rest.chars().nth(2) == Some('\'') {
            rest.char_indices().nth(3).map_or(rest.len(), |(end, _)| end)
        } else {
            0
        };
        if skipped == 0 {
            // An identifier is taken whole: the `r` at its end starts no raw string.
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let end = end.max(c.len_utf8());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            out.extend(rest[..skipped].chars().filter(|&c| c == '\n'));
            out.push(' ');
            rest = &rest[skipped..];
        }
    }
    out
}

/// The length of the string at the start of `text`.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return at + 1,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of the raw string at the start of `text`; zero if it is a raw identifier.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    text[body..].find(&end).map_or(text.len(), |at| body + at + end.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `word` stands in `line` and is not part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let bound = |inner: Option<char>, outer: Option<char>| {
            !(inner.is_some_and(is_word) && outer.is_some_and(is_word))
        };
        bound(word.chars().next(), before) && bound(word.chars().next_back(), after)
    })
}

/// Passes if nobody broke the rule.
#[track_caller]
fn hold(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}\n", broken.join("\n  "));
}

// ---- who depends on whom -----------------------------------------------------------------

/// A dependency as a manifest declares it.
#[derive(Debug, PartialEq)]
struct Dependency {
    line: usize,
    name: String,
    /// Only for tests, examples and benches.
    dev: bool,
    optional: bool,
}

fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    // The section, and the dependency that it is about as a whole.
    let (mut section, mut whole) = (String::new(), false);
    for (line, text) in manifest.lines().enumerate() {
        let text = text.split('#').next().unwrap_or_default().trim();
        let optional = text.replace(' ', "").contains("optional=true");
        if let Some(header) = text.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (head, last) = header.rsplit_once('.').unwrap_or(("", header));
            whole = head.ends_with("dependencies") && !last.ends_with("dependencies");
            section = if whole { head } else { header }.to_owned();
            if whole {
                let dev = section.ends_with("dev-dependencies");
                found.push(Dependency { line, name: last.to_owned(), dev, optional: false });
            }
        } else if whole {
            let last = found.last_mut().expect("its section began with it");
            last.optional |= optional;
        } else if section.ends_with("dependencies")
            && section != "workspace.dependencies"
            && let Some((key, _)) = text.split_once('=')
        {
            let name = key.trim().split('.').next().unwrap_or_default().to_owned();
            let dev = section.ends_with("dev-dependencies");
            found.push(Dependency { line, name, dev, optional });
        }
    }
    found
}

#[test]
fn manifests_are_read_right() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true # b = 1\n\
        c = { version = \"1\", optional = true }\n[dependencies.d]\noptional = true\n\
        [dev-dependencies]\ne = \"1\"\n[target.'cfg(unix)'.build-dependencies]\nf = \"1\"\n\
        [features]\ng = []\n";
    let found: Vec<_> = dependencies(manifest)
        .into_iter()
        .map(|found| (found.line, found.name, found.dev, found.optional))
        .collect();
    let expected = [
        (3, "a", false, false),
        (4, "c", false, true),
        (5, "d", false, true),
        (8, "e", true, false),
        (10, "f", false, false),
    ];
    let expected =
        expected.map(|(line, name, dev, optional)| (line, name.to_owned(), dev, optional));
    assert_eq!(found, expected);
}

#[test]
fn the_rooms_depend_on_each_other_as_designed() {
    let allowed = |room: &str, dependency: &Dependency| {
        let Dependency { name, dev, optional, .. } = dependency;
        let ours = name.strip_prefix("selvedge-");
        match room {
            "core" => ours.is_none() && (*dev || name.starts_with("serde") && *optional),
            "sim" | "hw" => ours.is_none_or(|ours| ours == "core"),
            "scenarios" => ours.is_none_or(|ours| match ours {
                "core" | "sim" => true,
                "hw" => *optional,
                _ => false,
            }),
            "proptests" => ours.is_none_or(|ours| ours != "scenarios" || *dev),
            _ => false,
        }
    };
    let mut broken = Vec::new();
    for file in tree().iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let room = file.path.trim_end_matches("/Cargo.toml");
        for dependency in dependencies(&file.text) {
            if !allowed(room, &dependency) {
                broken.push(file.place(dependency.line, &dependency.name));
            }
        }
        if !file.text.contains("[lints]\nworkspace = true") {
            broken.push(format!("{}: does not take the lints of the workspace", file.path));
        }
    }
    hold("an edge that the design does not have", broken);
}

// ---- what a room may use -----------------------------------------------------------------

#[test]
fn core_says_what_it_forbids() {
    let files = tree();
    let lib = files.iter().find(|file| file.path == "core/src/lib.rs").expect("core has a root");
    let code = blanked(&lib.text);
    let lines =
        ["#![no_std]", "#![forbid(unsafe_code)]", "#![deny(clippy::wildcard_enum_match_arm)]"];
    let missing = lines.iter().filter(|line| !code.contains(**line));
    hold("core/src/lib.rs lacks", missing.map(|line| (*line).to_owned()).collect());
}

#[test]
fn core_has_no_clock_no_chance_and_no_hash_maps() {
    const BANNED: &[&str] = &[
        "std::time",
        "Instant",
        "SystemTime",
        "rand",
        "rand_core",
        "HashMap",
        "HashSet",
        "RandomState",
        "hash_map",
        "Cell",
        "RefCell",
        "Mutex",
        "println!",
    ];
    let files = tree();
    // Its benches are programs of their own, and print.
    let core = files.iter().filter(|file| file.is_rust() && file.is_in(&["core/src"]));
    hold("core must not use", core.flat_map(|file| file.uses(BANNED)).collect());
}

#[test]
fn nothing_in_sim_is_walked_in_the_order_of_a_hash() {
    const BANNED: &[&str] = &["HashMap", "HashSet", "hash_map", "RandomState"];
    let files = tree();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.is_in(&["sim"])) {
        let uses = file.uses(BANNED);
        match HASH_MAPS.iter().any(|(path, _)| *path == file.path) {
            true if uses.is_empty() => broken.push(format!("{}: allowed and unused", file.path)),
            true => {}
            false => broken.extend(uses),
        }
    }
    hold("sim may look hash maps up, not walk them, and only where that is allowed", broken);
}

#[test]
fn core_and_sim_compute_in_integers() {
    let files = tree();
    let mut broken = Vec::new();
    // Examples print for people, and nothing reads what they print.
    let exact = |file: &&File| file.is_rust() && file.is_in(&["core/src", "sim/src"]);
    for file in files.iter().filter(exact) {
        match FLOATS.iter().any(|(path, _)| *path == file.path) {
            true if file.uses(&["f64"]).is_empty() => {
                broken.push(format!("{}: allowed and unused", file.path));
            }
            true => continue,
            false => broken.extend(file.uses(&["f32", "f64"])),
        }
        for (at, line) in file.code().iter().enumerate().filter(|(_, line)| has_float(line)) {
            broken.push(file.place(at, line.trim()));
        }
    }
    hold("floating point must not reach the trace", broken);
}

/// Whether a literal like `1.5` stands in `line`; `pair.0.1` is none.
fn has_float(line: &str) -> bool {
    line.match_indices('.').any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + 1..]);
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
        let outer = digits.chars().next_back();
        digits.len() < before.len()
            && !outer.is_some_and(|c| is_word(c) || c == '.')
            && after.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn only_hw_is_unsafe() {
    let files = tree();
    let safe = files.iter().filter(|file| file.is_rust() && !file.is_in(&["hw"]));
    hold("unsafe code lives in hw", safe.flat_map(|file| file.uses(&["unsafe"])).collect());
}

// ---- how code looks ----------------------------------------------------------------------

#[test]
fn a_long_file_says_in_its_header_why() {
    let files = tree();
    let long = files.iter().filter(|file| file.is_rust() && file.text.lines().count() > LINES_MAX);
    let silent =
        long.filter(|file| !file.text.lines().take(20).any(|line| has_word(line, "lines")));
    let broken = silent.map(|file| format!("{}: {} lines", file.path, file.text.lines().count()));
    hold(
        "a file of more than 800 lines names its reason in a line that speaks of lines",
        broken.collect(),
    );
}

#[test]
fn nothing_is_left_undone_skipped_or_slept_over() {
    const BANNED: &[&str] =
        &["todo!", "unimplemented!", "dbg!", "#[ignore", "thread::sleep", "sleep_ms"];
    let files = tree();
    let code = files.iter().filter(|file| file.is_rust());
    hold("finished code has none of", code.flat_map(|file| file.uses(BANNED)).collect());
}

/// The first and last line of every function called `step`.
fn steps(code: &[String]) -> Vec<(usize, usize)> {
    let starts = code.iter().enumerate().filter(|(_, line)| has_word(line, "fn step"));
    let bodies = starts.filter_map(|(start, _)| {
        let mut depth = 0;
        for (at, line) in code.iter().enumerate().skip(start) {
            let opened = line.matches('{').count();
            depth += opened;
            depth -= depth.min(line.matches('}').count());
            // A declaration without a body ends before a brace comes.
            if depth == 0 && (opened > 0 || line.contains('}') || line.trim_end().ends_with(';')) {
                return Some((start, at));
            }
        }
        None
    });
    bodies.collect()
}

#[test]
fn machines_name_every_state_and_event() {
    let files = tree();
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.is_in(&["core/src"])) {
        let code = file.code();
        let tests = code.iter().position(|line| line.contains("#[cfg(test)]"));
        let end = tests.unwrap_or(code.len());
        // The connection machines are spread over many functions: their files are read whole.
        let whole = file.path.ends_with("/connect.rs");
        let bodies = if whole { vec![(0, end.saturating_sub(1))] } else { steps(&code) };
        for (first, last) in bodies {
            for (at, line) in code.iter().enumerate().take(last + 1).skip(first) {
                let pair = line.contains("match (")
                    && line.contains("event")
                    && (line.contains("state") || line.contains("self"));
                if pair || has_word(line, "_ =>") || has_word(line, "_ if") {
                    broken.push(file.place(at, line.trim()));
                }
            }
        }
    }
    hold("state outside, event inside, and no catch-all arm", broken);
}

// ---- what is published -------------------------------------------------------------------

#[test]
fn no_path_leads_out_of_the_tree() {
    const ELSEWHERE: &[&str] = &["/work", "/tmp", "/home", "/root", "shared/"];
    // Only the call from outside knows where outside is.
    let files = tree();
    let public = files.iter().filter(|file| file.path != ".ci/run" && file.path != SELF);
    let mut broken = Vec::new();
    for file in public {
        for (at, line) in file.text.lines().enumerate() {
            let leads = |path: &&&str| {
                line.match_indices(**path).any(|(at, _)| {
                    let inside = |c: char| is_word(c) || matches!(c, '.' | '-' | '~' | '}');
                    let before = line[..at].chars().next_back();
                    let after = line[at + path.len()..].chars().next();
                    let relative = path.starts_with('/');
                    !before.is_some_and(|c| if relative { inside(c) } else { is_word(c) })
                        && (!relative || !after.is_some_and(|c| is_word(c) || c == '-'))
                })
            };
            broken.extend(ELSEWHERE.iter().find(leads).map(|path| file.place(at, path)));
        }
    }
    hold("a path that exists on one machine only", broken);
}

#[test]
fn scenarios_are_named_in_kebab_case() {
    let kebab = |name: &str| {
        name.split('-').all(|word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    };
    let files = tree();
    let suite = files.iter().filter_map(|file| {
        let inner = file.path.strip_prefix("scenarios/suite/")?;
        let named = inner.strip_suffix(".json").is_some_and(|path| path.split('/').all(kebab));
        (!named && !inner.ends_with(".md")).then(|| file.path.clone())
    });
    hold("a scenario is called like two-procs-meet.json", suite.collect());
}

// ---- the reader itself -------------------------------------------------------------------

#[test]
fn code_is_told_from_comments_and_literals() {
    let text =
        "a // b\n\"c // \\\" d\" e /* f\n g */ h r#\"i \" j\"# 'k' '\\'' &'l m '\"' n \"o\np\" q\n";
    let words: Vec<Vec<String>> = blanked(text)
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect();
    let expected: [&[&str]; 4] = [&["a"], &["e"], &["h", "&'l", "m", "n"], &["q"]];
    assert_eq!(words, expected);
}

#[test]
fn words_and_literals_are_found_whole() {
    let cases = [
        ("let x: f64 = y;", "f64", true),
        ("deserialize_f64(x)", "f64", false),
        ("HashMap::new()", "HashMap", true),
        ("use hash::HashMaps;", "HashMap", false),
        ("std::time::Instant", "std::time", true),
        ("#[ignore = x]", "#[ignore", true),
        ("todo!()", "todo!", true),
        ("    _ => x,", "_ =>", true),
        ("Some(_) => x", "_ =>", false),
    ];
    for (line, word, found) in cases {
        assert_eq!(has_word(line, word), found, "{line} {word}");
    }
    for (line, found) in [("x * 1.5", true), ("pair.0.1", false), ("0..5", false), ("v1.2", false)]
    {
        assert_eq!(has_float(line), found, "{line}");
    }
    let code =
        ["trait T { fn step(&self);", "}", "fn step() {", "match x {", "}", "}", "fn y() {}"];
    assert_eq!(steps(&code.map(str::to_owned)), [(0, 1), (2, 5)]);
}
