//! Mistakes in input files: where they are, and what was probably meant.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// One mistake in one file, printed as `file:line:column: message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 when the mistake is the file as a whole.
    pub line: u32,
    /// The column in characters, from 1; 0 when the mistake is the file as a whole.
    pub column: u32,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Diagnostic {
    /// A mistake that has no place inside the file.
    #[must_use]
    pub fn whole_file(file: &str, message: impl Into<String>) -> Self {
        Diagnostic { file: file.to_owned(), line: 0, column: 0, message: message.into() }
    }

    /// A mistake at byte `offset` of the file's text.
    #[must_use]
    pub fn at(file: &str, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, offset);
        Diagnostic { file: file.to_owned(), line, column, message: message.into() }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}:{}: {}", self.file, self.column, self.message),
        }
    }
}

/// Line and column of a byte offset, both from 1, columns in characters.
#[must_use]
pub fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[start..].chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// "unknown `kind` `word`" with the nearest known word, or with all of them when none is near.
#[must_use]
pub fn unknown(kind: &str, word: &str, known: &[&str]) -> String {
    let shown: String = word.chars().take(60).collect();
    match nearest(word, known) {
        Some(meant) => format!("unknown {kind} `{shown}`, did you mean `{meant}`?"),
        None if known.is_empty() => format!("unknown {kind} `{shown}`: none is known here"),
        None => format!("unknown {kind} `{shown}`, known: {}", known.join(", ")),
    }
}

/// The known word that takes the fewest edits, if they are few enough to be a slip.
#[must_use]
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = word.chars().count();
    if length > 64 {
        return None;
    }
    known
        .iter()
        .map(|candidate| (edits(word, candidate), *candidate))
        .filter(|(cost, candidate)| *cost <= (length.max(candidate.len()) / 3).max(1))
        .min_by_key(|(cost, _)| *cost)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
/// Case and the choice between `-` and `_` are free: they are the commonest slips.
fn edits(a: &str, b: &str) -> usize {
    let fold = |c: char| if c == '_' || c == ' ' { '-' } else { c.to_ascii_lowercase() };
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().map(fold).collect(), b.chars().map(fold).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut least =
                (above[j] + usize::from(a[i] != b[j])).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        (before, above) = (above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_a_far_one_is_not() {
        let known = ["tunables", "transport", "link-down", "at"];
        assert_eq!(nearest("tunabels", &known), Some("tunables"));
        assert_eq!(nearest("Link_Down", &known), Some("link-down"));
        assert_eq!(nearest("transprot", &known), Some("transport"));
        assert_eq!(nearest("ta", &known), Some("at"));
        assert_eq!(nearest("workload", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), &known), None);
        assert_eq!(unknown("key", "x", &[]), "unknown key `x`: none is known here");
    }

    #[test]
    fn offsets_become_lines_and_columns() {
        let text = "{\n  \"µ\": 1\n}";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 4), (2, 3));
        assert_eq!(line_and_column(text, 9), (2, 7), "columns count characters");
        assert_eq!(line_and_column(text, 6), (2, 4), "inside a character");
        assert_eq!(line_and_column(text, 9_999), (3, 2));
    }
}
