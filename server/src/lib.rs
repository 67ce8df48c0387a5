//! Haystore's server crate: command line, HTTP and everything that knows a wire protocol. The store itself is the crate `haystore`.

pub mod cli;
pub mod corpus;
