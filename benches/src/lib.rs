//! What the programs of this crate share: processes and what they use, inputs and their sums.

pub mod child;
pub mod input;
pub mod process;
