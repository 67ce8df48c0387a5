//! The program `haystore` as its users meet it: its own process, files, HTTP, signals.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may panic as the test itself may")]

mod support;

mod crash;
mod edge;
mod interrupted;
mod lossless;
mod needles;
mod usage;
