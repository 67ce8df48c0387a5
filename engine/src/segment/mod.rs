//! Segments: immutable objects of row groups and a footer.

mod describe;
mod file;
mod row_group;
mod rows;
mod time;

pub use describe::{Template, templates};
pub use file::{FOOTER_READ_BYTES, Footer, GroupInfo, MAGIC, SegmentWriter, read_footer};
pub use row_group::{RowGroup, RowGroupMeta, Rows, encode as encode_row_group};
pub use rows::Cut;
