//! The engine through its public calls: against a model, under crashes and faults, with damaged bytes, with readers and writers at once.

mod crash;
mod faults;
mod golden;
mod model;
