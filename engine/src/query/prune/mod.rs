//! What can be ruled out before a line is rebuilt: pure functions over what the segment knows.
//!
//! Holds: a row is ruled out only when it is proven not to match. Unknown never skips.
//! This module must not know bytes of segments nor do IO.

mod placement;

pub use placement::{Fit, PLACEMENTS_MAX, Piece, Placement, Placements, SlotTest, placements, placements_where};
