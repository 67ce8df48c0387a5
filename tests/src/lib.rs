//! What the tests share: random records, a plain model of the store, the ground that a simulated store stands on, comparisons.
//!
//! Nothing here knows how the engine works inside: it is asked only through its public calls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking, as tests do")]

pub mod rounds;

pub mod record;

pub mod model;
pub mod random;

pub mod check;
pub mod ledger;
pub mod world;

pub mod golden;
