//! How often a test runs, with which seeds, on what runtime, and for how long at most.
//!
//! `HAYSTORE_TEST_ROUNDS=20` runs each test with twenty times its seeds; `HAYSTORE_TEST_SEED=7` runs seed 7 alone.

use std::time::Duration;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")))
}

/// The factor asked for by `HAYSTORE_TEST_ROUNDS`.
pub fn factor() -> u64 {
    number("HAYSTORE_TEST_ROUNDS").unwrap_or(1).max(1)
}

/// The seeds to run: `count` of them, unless the environment asks for more, or for one.
pub fn seeds(count: u64) -> Vec<u64> {
    match number("HAYSTORE_TEST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count * factor()).collect(),
    }
}

/// Runs `test` for each seed, each on a runtime of its own, and says which seed it is.
pub fn for_seeds<F: Future<Output = ()>>(count: u64, test: impl Fn(u64) -> F) {
    for seed in seeds(count) {
        println!("seed {seed} (alone: HAYSTORE_TEST_SEED={seed})");
        run(test(seed));
    }
}

/// Runs `test` on a runtime with two threads; panics when it takes longer than five minutes times the factor.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limit = Duration::from_secs(300 * factor());
    let outcome = runtime.block_on(async { tokio::time::timeout(limit, test).await });
    // Threads that hang must not keep the test from failing.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|_| panic!("no end within {limit:?}"))
}
