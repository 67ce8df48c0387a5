//! The engine's one error type. Its kind says what the caller can do.
//!
//! Messages are lower case and name the object and offset, or the line and column, they speak of.

use std::fmt;

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is at fault: mend it, then try again.
    Invalid,
    /// A named limit was passed: ask for less.
    Limit,
    /// The engine is full or its store does not answer: the same call may work later.
    Busy,
    /// Bytes at rest are damaged; the message names object and offset.
    Corrupt,
    /// The disk or the object store refuses: permissions, credentials or the address must be mended first. Trying again is of no use.
    Denied,
    /// The thing asked for does not exist.
    NotFound,
    /// Another process owns the WAL, or a newer epoch of this writer exists: give up.
    Fenced,
    /// The operating system or the object store failed.
    Io,
    /// A bug in this program.
    Internal,
}

/// An error of the engine: a kind and one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }
    /// The input is at fault.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }
    /// A named limit was passed.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }
    /// Try again later.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }
    /// `object` is damaged at byte `offset`.
    pub fn corrupt(object: &str, offset: u64, what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, format!("{object}: damaged at byte {offset}: {what}"))
    }
    /// The operating system or object store failed while doing `what`.
    pub fn io(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Io, format!("{what}: {cause}"))
    }
    /// A bug in this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }
    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The sentence without its kind.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The same error with `place` (an object, a file) put before its message.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
