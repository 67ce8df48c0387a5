//! Writes the golden files anew. Only for a format version that was never released: a released version's files are never rewritten.

fn main() {
    let (good, bad) = haystore_tests::golden::files::make();
    haystore_tests::golden::files::write("v1", &good);
    haystore_tests::golden::files::write("bad", &bad);
}
