//! JSON that remembers where everything stood.
//!
//! `serde_json` judges the syntax; a second pass over the accepted text notes the place of every
//! key and value. Types are then read from that tree, so that each mistake, found by serde or
//! later by us, points at its own line and column and not at the end of something around it.

mod de;
mod tree;

use std::fmt::Write as _;

use serde::de::{DeserializeOwned, IgnoredAny};

pub use tree::{Member, Node, Value};

use crate::diagnostic::{Diagnostic, line_and_column};

/// The path of a value in a document: a JSON pointer that grows and shrinks as one walks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

impl Path {
    /// The document itself.
    #[must_use]
    pub fn root() -> Self {
        Path::default()
    }

    /// The value under `key` of this object.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Key(key.to_owned()));
        path
    }

    /// Item number `index` of this array, from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Item(index));
        path
    }

    /// The value at `rest`, seen from the value at this path.
    #[must_use]
    pub fn join(&self, rest: &Path) -> Self {
        let mut path = self.clone();
        path.0.extend(rest.0.iter().cloned());
        path
    }

    /// As a JSON pointer, such as `/faults/0/loss`.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut text = String::new();
        for step in &self.0 {
            let _ = match step {
                Step::Key(key) => write!(text, "/{}", key.replace('~', "~0").replace('/', "~1")),
                Step::Item(index) => write!(text, "/{index}"),
            };
        }
        text
    }
}

/// A document with the place of each part.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
    root: Node,
}

impl Document {
    /// Reads `bytes` as one JSON document called `file`.
    ///
    /// # Errors
    /// When it is not UTF-8 JSON, nests too deeply or repeats a key.
    pub fn parse(file: &str, bytes: Vec<u8>) -> Result<Document, Diagnostic> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let sound = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..sound]).into_owned();
            Diagnostic::at(file, &text, sound, "this byte is not UTF-8: save the file as UTF-8")
        })?;
        if text.starts_with('\u{feff}') {
            let message = "the file starts with a byte order mark: save it as UTF-8 without one";
            return Err(Diagnostic::at(file, &text, 0, message));
        }
        if text.trim().is_empty() {
            return Err(Diagnostic::at(
                file,
                &text,
                0,
                "the file is empty: it must hold one object",
            ));
        }
        serde_json::from_str::<IgnoredAny>(&text).map_err(|error| {
            // Reading for real tells a trailing comma from a key that is no string.
            let error = serde_json::from_str::<serde_json::Value>(&text).err().unwrap_or(error);
            syntax_error(file, &text, &error)
        })?;
        let root = tree::scan(&text)
            .map_err(|mistake| Diagnostic::at(file, &text, mistake.offset, mistake.message))?;
        Ok(Document { file: file.to_owned(), text, root })
    }

    /// Reads the document as a `T`; an unknown key or word comes with the nearest known one.
    ///
    /// # Errors
    /// At the first part that is not what `T` has there.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Diagnostic> {
        de::read(&self.root).map_err(|mistake| self.diagnostic(mistake.offset, mistake.message))
    }

    /// Refuses a document of another version before anything else is held against it.
    ///
    /// # Errors
    /// When `schema_version` is missing or is not `version`.
    pub fn require_version(&self, version: u32) -> Result<(), Diagnostic> {
        let Value::Object(members) = &self.root.value else {
            let message = "the file must hold one object: {\"schema_version\": 1, ...}";
            return Err(self.diagnostic(self.root.start, message.to_owned()));
        };
        let Some(member) = members.iter().find(|member| member.key == "schema_version") else {
            let message =
                format!("key `schema_version` is missing: write \"schema_version\": {version}");
            return Err(self.diagnostic(self.root.start, message));
        };
        match &member.node.value {
            Value::Number(digits) if *digits == version.to_string() => Ok(()),
            Value::Number(digits) => {
                let shown: String = digits.chars().take(20).collect();
                let message =
                    format!("version {shown} is not known here, this program reads {version}");
                Err(self.diagnostic(member.node.start, message))
            }
            _ => {
                let message =
                    format!("the version is a number: write \"schema_version\": {version}");
                Err(self.diagnostic(member.node.start, message))
            }
        }
    }

    /// The whole document.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The name it was read under.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// A mistake in the value at `path`, or in the nearest part around it that was written.
    #[must_use]
    pub fn mistake(&self, path: &Path, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(self.offset(path), message.into())
    }

    /// Line and column of the value at `path`, or of the nearest part around it.
    #[must_use]
    pub fn place(&self, path: &Path) -> (u32, u32) {
        line_and_column(&self.text, self.offset(path))
    }

    fn offset(&self, path: &Path) -> usize {
        let mut node = &self.root;
        for step in &path.0 {
            let next = match (step, &node.value) {
                (Step::Key(key), Value::Object(members)) => {
                    members.iter().find(|member| member.key == *key).map(|member| &member.node)
                }
                (Step::Item(index), Value::Array(items)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.start
    }

    fn diagnostic(&self, offset: usize, message: String) -> Diagnostic {
        Diagnostic::at(&self.file, &self.text, offset, message)
    }
}

/// `serde_json`'s complaint without its own place, which counts bytes and comes one late.
fn syntax_error(file: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let offset = line_start + error.column().saturating_sub(1);
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full);
    Diagnostic::at(file, text, offset, format!("not JSON: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: impl Into<Vec<u8>>) -> String {
        Document::parse("f", bytes.into()).expect_err("must be refused").to_string()
    }

    #[test]
    fn hostile_documents_are_refused_with_their_place() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (bytes, expected) in [
            (&b""[..], "f:1:1: the file is empty"),
            (b" \n ", "f:1:1: the file is empty"),
            (b"\xef\xbb\xbf{}", "f:1:1: the file starts with a byte order mark"),
            (b"{\n \"a\": \"\xff\"}", "f:2:8: this byte is not UTF-8"),
            (b"{\"a\": 1,\n}", "f:2:1: not JSON: trailing comma"),
            (b"[1, 2,]", "f:1:7: not JSON: trailing comma"),
            (b"{\"a\": NaN}", "f:1:7: not JSON: expected value"),
            (b"{\"a\": 01}", "f:1:8: not JSON: invalid number"),
            (b"{} {}", "f:1:4: not JSON: trailing characters"),
            (b"{\"a\"", "not JSON: EOF"),
            (
                b"{\"a\": 1, \"b\": 2,\n \"a\": 3}",
                "f:2:2: key `a` is written twice, first in line 1",
            ),
            (b"{\"a\": 1, \"\\u0061\": 3}", "f:1:10: key `a` is written twice"),
            (b"[\"\\ud800\"]", "f:1:2: not a string"),
            (deep.as_bytes(), "f:1:129: nested too deeply"),
        ] {
            let error = refused(bytes);
            assert!(error.contains(expected), "{error}\nshould say\n{expected}");
        }
    }

    #[test]
    fn a_path_finds_its_line_and_column() {
        let text = "{\n  \"faults\": [\n    {\"loss\": {\"rate\": \"1%\"}},\n    7\n  ]\n}";
        let document = Document::parse("f", text.into()).expect("sound");
        let faults = Path::root().key("faults");
        assert_eq!(document.place(&Path::root()), (1, 1));
        assert_eq!(document.place(&faults), (2, 13));
        assert_eq!(document.place(&faults.item(0).key("loss").key("rate")), (3, 23));
        assert_eq!(document.place(&faults.item(1)), (4, 5));
        assert_eq!(document.place(&faults.item(0).key("delay").key("by")), (3, 5), "nearest part");
        assert_eq!(faults.item(0).key("a/b~c").pointer(), "/faults/0/a~1b~0c");
    }
}
