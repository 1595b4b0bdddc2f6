//! From the paths a user names to the files that are meant.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;

/// Deeper than any folder of scenarios.
const DEPTH_MAX: usize = 64;

/// The `.json` files under `paths`: folders are searched in sorted order, a file that is named is
/// taken whatever it is called, and nothing is taken twice.
///
/// # Errors
/// With every path that is missing or cannot be read.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Vec<Diagnostic>> {
    let mut search = Search::default();
    for path in paths {
        match fs::metadata(path) {
            Ok(kind) if kind.is_dir() => search.folder(path, 0),
            Ok(_) => search.file(path),
            Err(error) => search.missing(path, &error),
        }
    }
    if search.errors.is_empty() { Ok(search.files) } else { Err(search.errors) }
}

#[derive(Default)]
struct Search {
    files: Vec<PathBuf>,
    /// The real paths of what was taken: links that lead back here end here.
    seen: BTreeSet<PathBuf>,
    errors: Vec<Diagnostic>,
}

impl Search {
    fn missing(&mut self, path: &Path, error: &std::io::Error) {
        let message = format!("cannot be read: {error}");
        self.errors.push(Diagnostic::whole_file(&path.display().to_string(), message));
    }

    /// Whether `path` is met for the first time.
    fn is_new(&mut self, path: &Path) -> bool {
        match fs::canonicalize(path) {
            Ok(real) => self.seen.insert(real),
            Err(error) => {
                self.missing(path, &error);
                false
            }
        }
    }

    fn file(&mut self, path: &Path) {
        if self.is_new(path) {
            self.files.push(path.to_owned());
        }
    }

    fn folder(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH_MAX || !self.is_new(path) {
            return;
        }
        let entries = match fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
            Ok(entries) => entries,
            Err(error) => return self.missing(path, &error),
        };
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            // A link that leads nowhere is nobody's scenario.
            let Ok(kind) = fs::metadata(&path) else { continue };
            if kind.is_dir() {
                self.folder(&path, depth + 1);
            } else if kind.is_file() && path.extension().is_some_and(|it| it == "json") {
                self.file(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_in_order_and_loops_end() {
        let root = std::env::temp_dir().join(format!("selvedge-discover-{}", std::process::id()));
        fs::create_dir_all(root.join("b/c")).expect("a scratch folder");
        for file in ["z.json", "a.json", "b/c/m.json", "b/note.txt"] {
            fs::write(root.join(file), "{}").expect("a scratch file");
        }
        #[cfg(unix)]
        for (to, link) in [("..", "b/loop"), ("nowhere", "broken.json")] {
            std::os::unix::fs::symlink(to, root.join(link)).expect("a link");
        }
        let found = find(&[root.clone(), root.join("a.json")]);
        let missing = find(&[root.join("none.json")]);
        fs::remove_dir_all(&root).expect("the scratch folder goes");
        let expected: Vec<_> =
            ["a.json", "b/c/m.json", "z.json"].iter().map(|file| root.join(file)).collect();
        assert_eq!(found, Ok(expected));
        assert!(missing.is_err_and(|errors| errors[0].message.starts_with("cannot be read")));
    }
}
