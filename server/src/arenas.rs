//! How many heaps glibc's allocator keeps.
//!
//! By default it gives threads up to eight heaps a core, and what one of them frees the others cannot use. Encoding, merging and requests
//! move between threads all the time, so after a few large ingests half of the process's memory lay free in the wrong heap
//! (702 MB of peak with the default, 437 MB with two heaps, for the same three pushes of 614 MB with compaction).

/// Keeps the number of heaps down; to be called before there is a second thread. Other allocators are left alone.
pub fn limit() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() {
        let cores = std::thread::available_parallelism().map_or(2, |n| n.get()).clamp(2, 16);
        // SAFETY: mallopt changes a number inside the allocator; the process has one thread yet.
        #[allow(unsafe_code)]
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, cores as i32);
        }
    }
}
