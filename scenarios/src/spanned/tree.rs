//! The second pass: from text to a tree of places.

use std::collections::BTreeMap;

use crate::diagnostic::line_and_column;

/// A value and where it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Byte offset of its first character.
    pub start: usize,
    /// What it is.
    pub value: Value,
}

/// One key of an object with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Byte offset of the key's opening quote.
    pub start: usize,
    /// The key, unescaped.
    pub key: String,
    /// The value.
    pub node: Node,
}

/// A JSON value; numbers keep the digits they were written with.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is spelled.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Node>),
    /// An object; no key comes twice.
    Object(Vec<Member>),
}

/// Something wrong at a byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// Deeper than any document of ours; `serde_json` stops at the same depth.
const DEPTH_MAX: usize = 128;

/// Builds the tree. Judges only what it must to go on: text that is not JSON gives a mistake or
/// some tree, never a panic.
pub(super) fn scan(text: &str) -> Result<Node, Mistake> {
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    let node = scanner.value()?;
    scanner.space();
    if scanner.at < text.len() { Err(scanner.mistake("unexpected text")) } else { Ok(node) }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Steps over `byte`, if it is next after any space.
    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { offset: self.at, message: message.into() }
    }

    fn value(&mut self) -> Result<Node, Mistake> {
        self.space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Value::String(self.string()?),
            Some(_) => self.word()?,
            None => return Err(self.mistake("the text ends where a value must be")),
        };
        Ok(Node { start, value })
    }

    fn nested(
        &mut self,
        inside: fn(&mut Self) -> Result<Value, Mistake>,
    ) -> Result<Value, Mistake> {
        if self.depth == DEPTH_MAX {
            return Err(self.mistake("nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Mistake> {
        let mut members: Vec<Member> = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let start = self.at;
            let key = self.string()?;
            if let Some(first) = seen.insert(key.clone(), start) {
                let (line, _) = line_and_column(self.text, first);
                let message = format!("key `{key}` is written twice, first in line {line}");
                return Err(Mistake { offset: start, message });
            }
            if !self.eat(b':') {
                return Err(self.mistake("expected `:`"));
            }
            members.push(Member { start, key, node: self.value()? });
            if self.eat(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.mistake("expected `,` or `}`"));
            }
        }
    }

    fn array(&mut self) -> Result<Value, Mistake> {
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.eat(b']') {
                return Ok(Value::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.mistake("expected `,` or `]`"));
            }
        }
    }

    /// Finds the end of a string; what its escapes mean is `serde_json`'s business.
    fn string(&mut self) -> Result<String, Mistake> {
        let start = self.at;
        let not_a_string = || Mistake { offset: start, message: "not a string".to_owned() };
        if self.peek() != Some(b'"') {
            return Err(not_a_string());
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(not_a_string()),
            }
        }
        self.at += 1;
        let spelled = self.text.get(start..self.at).ok_or_else(not_a_string)?;
        serde_json::from_str(spelled).map_err(|_| not_a_string())
    }

    fn word(&mut self) -> Result<Value, Mistake> {
        let start = self.at;
        while let Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.') = self.peek() {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "null" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Ok(Value::Number(number.to_owned()))
            }
            _ => Err(Mistake { offset: start, message: "expected a value".to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_prefix_and_any_damage_is_survived() {
        let text = r#"{"a": [1, -2.5e3, true, null, "x\n\u00b5 µ"], "b": {}, "c": []}"#;
        assert!(scan(text).is_ok());
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(scan(&text[..end]).is_err(), "a prefix is never whole");
        }
        for at in 0..text.len() {
            for byte in *b"\"\\{}[],: x0\xff" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let _ = scan(&String::from_utf8_lossy(&bytes));
            }
        }
        assert!(scan(&"[".repeat(1_000_000)).is_err());
        assert!(scan(&"{\"a\":".repeat(1_000_000)).is_err());
    }
}
