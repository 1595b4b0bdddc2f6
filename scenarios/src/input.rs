//! Files as they come from the user: read whole, of bounded size, or refused.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::diagnostic::Diagnostic;

/// Larger than any sensible file: a device or a dump named by mistake is refused, not read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why a file could not be used.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// It could not be read.
    Unreadable(Diagnostic),
    /// It was read and is wrong.
    Invalid(Vec<Diagnostic>),
}

impl LoadError {
    /// What to tell the user.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            LoadError::Unreadable(one) => std::slice::from_ref(one),
            LoadError::Invalid(all) => all,
        }
    }
}

/// Reads a whole file of bounded size.
///
/// # Errors
/// When it is missing, cannot be read or is absurdly large.
pub fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = path.display().to_string();
    let unreadable = |error: io::Error| {
        LoadError::Unreadable(Diagnostic::whole_file(&name, format!("cannot be read: {error}")))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("larger than {} MiB: this is no file of ours", FILE_BYTES_MAX >> 20);
        return Err(LoadError::Invalid(vec![Diagnostic::whole_file(&name, message)]));
    }
    Ok(bytes)
}
