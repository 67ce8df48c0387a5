//! The engine through its public calls: against a model, under crashes and faults, with damaged bytes, with readers and writers at once.

mod corruption;
mod crash;
mod faults;
mod fencing;
mod model;
mod readers;
