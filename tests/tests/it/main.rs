//! The engine through its public calls: against a model, under crashes and faults, with damaged bytes, with readers and writers at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking, as tests do")]

mod bytes;
mod corruption;
mod crash;
mod faults;
mod fencing;
mod golden;
mod model;
mod needles;
mod orphans;
mod readers;
#[cfg(feature = "s3")]
mod s3;
