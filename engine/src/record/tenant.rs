//! The tenant: the outermost border between records.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A tenant's name: 1 to 150 bytes of ASCII letters, digits and `!-_.*'()`, not `.` or `..`
/// (the rule of the `X-Scope-OrgID` header's usual senders, safe as a part of an object key).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The longest name, in bytes.
    pub const BYTES_MAX: usize = haystore_format::constants::TENANT_BYTES_MAX;
    /// The name used where a sender gives none.
    pub const DEFAULT: &'static str = "fake";

    /// Checks `name`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the name breaks the rule above.
    pub fn new(name: &str) -> Result<Self> {
        let fits = !name.is_empty()
            && name.len() <= Self::BYTES_MAX
            && name != "."
            && name != ".."
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!-_.*'()".contains(&b));
        if fits {
            Ok(Tenant(name.into()))
        } else {
            Err(Error::invalid(format!("tenant {name:?}: a tenant's name has 1 to {} ASCII letters, digits or !-_.*'()", Self::BYTES_MAX)))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Tenant(Self::DEFAULT.into())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
