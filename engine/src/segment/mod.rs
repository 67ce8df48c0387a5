//! Segments: immutable objects of row groups and a footer.

mod file;
mod row_group;
mod time;

pub use file::{FOOTER_READ_BYTES, Footer, GroupInfo, SegmentWriter, read_footer};
pub use row_group::{RowGroup, RowGroupMeta, Rows, encode as encode_row_group};
