//! Every number of the segment format. The chapters' tables say the same; a test compares them.

/// First and last bytes of a segment: `HAYSEG`, format version (u8), 0.
pub const MAGIC: &[u8; 8] = b"HAYSEG\x01\x00";
/// Format version of segments.
pub const SEGMENT_VERSION: u8 = 1;
/// Bytes of the trailer.
pub const TRAILER_BYTES: usize = 24;
/// Longest name of a tenant.
pub const TENANT_BYTES_MAX: usize = 150;

/// A writer closes a row range at so many rows …
pub const RANGE_ROWS_MAX: usize = 8192;
/// … or before its lines pass so many bytes.
pub const RANGE_BYTES_MAX: usize = 1 << 20;
/// Most row ranges of a row group.
pub const RANGES_MAX: u64 = 1 << 20;
/// A page is closed once it has so many values.
pub const PAGE_VALUES_MIN: usize = 4096;
/// Pieces of at least so many bytes have a frame of their own.
pub const OWN_FRAME_BYTES: usize = 8 << 10;
/// A shared frame is closed once it has so many bytes.
pub const SHARED_FRAME_BYTES: usize = 16 << 10;
/// Most entries of a dictionary page.
pub const DICTIONARY_PAGE_ENTRIES_MAX: u64 = 1 << 16;
/// Most bytes that the literals of a column's shapes have together, each counted as often as it occurs.
pub const SHAPES_BYTES_MAX: usize = 1 << 28;
/// Least and most bytes of an entry of a hex class.
pub const HEX_WIDTH_MIN: usize = 4;
/// See [`HEX_WIDTH_MIN`].
pub const HEX_WIDTH_MAX: usize = 64;
/// Most digits of a padded integer.
pub const PADDED_WIDTH_MAX: u8 = 18;
/// Most digits behind a decimal's point.
pub const DECIMAL_SCALE_MAX: u8 = 17;
/// Families of time layouts.
pub const TIME_FAMILIES: u8 = 6;
/// Most fraction digits of a time.
pub const TIME_DIGITS_MAX: u8 = 9;
/// Newest version of pcodec's format that pages may have.
pub const PCO_MAJOR: u8 = 4;
/// See [`PCO_MAJOR`].
pub const PCO_MINOR: u8 = 1;
/// How deep metadata values may nest.
pub const METADATA_DEPTH_MAX: usize = 64;

/// How a column is encoded.
pub mod column {
    /// One value for all rows.
    pub const CONSTANT: u8 = 0;
    /// The values of another column.
    pub const SAME: u8 = 1;
    /// Pages of byte strings.
    pub const TEXT: u8 = 2;
    /// Pages of numbers that print as the values.
    pub const NUMBER: u8 = 3;
    /// Pages of entry numbers.
    pub const DICTIONARY: u8 = 4;
    /// Pages of shape numbers.
    pub const SHAPES: u8 = 5;
    /// The values of another column, escaped.
    pub const ESCAPED: u8 = 6;
    /// Entries of a dictionary, chosen by the entry numbers of another column.
    pub const MAPPED: u8 = 7;
    /// Values of another column joined.
    pub const LIST: u8 = 8;
    /// Numbers computed from those of another column.
    pub const COMPUTED: u8 = 9;
}

/// What a number prints as.
pub mod types {
    /// An integer.
    pub const INT: u8 = 0;
    /// An integer with leading zeros.
    pub const PADDED: u8 = 1;
    /// A decimal number.
    pub const DECIMAL: u8 = 2;
    /// A timestamp.
    pub const TIME: u8 = 3;
    /// A timestamp without zeros at the end.
    pub const SHORT_TIME: u8 = 4;
    /// A decimal number without zeros at the end.
    pub const SHORT_DECIMAL: u8 = 5;
}

/// How an escaped column differs from the plain one.
pub mod escape {
    /// Backslashes, as in JSON.
    pub const JSON: u8 = 0;
    /// Quotes written twice, as in CSV.
    pub const DOUBLED: u8 = 1;
}

/// The class of a dictionary.
pub mod class {
    /// Any bytes.
    pub const TEXT: u8 = 0;
    /// Lower-case hex digits.
    pub const HEX_LOWER: u8 = 1;
    /// Upper-case hex digits.
    pub const HEX_UPPER: u8 = 2;
    /// UUIDs.
    pub const UUID: u8 = 3;
    /// IPv4 addresses.
    pub const IPV4: u8 = 4;
}

/// The form of a page of integers.
pub mod integer {
    /// One value.
    pub const CONSTANT: u8 = 0;
    /// Varints.
    pub const SHORT: u8 = 1;
    /// Byte planes.
    pub const PLANES: u8 = 2;
    /// Byte planes of differences.
    pub const DELTA_PLANES: u8 = 3;
    /// pco over u32.
    pub const PCO32: u8 = 4;
    /// pco over u64.
    pub const PCO64: u8 = 5;
}
