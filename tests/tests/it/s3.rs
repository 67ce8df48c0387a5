//! The suite against a real S3 server, which the tests start: `moto_server` from PATH, or the program named by `MOTO_SERVER`.

use crate::model::{Play, quiet};
use haystore::manifest::{Delta, JobChange, Manifest, SystemEnvironment};
use haystore::objects::{FaultPlan, Faulty, Objects, RemoteObjects, RetryPolicy, Retrying};
use haystore::{Options, Tenant};
use haystore_tests::check::everything;
use haystore_tests::ledger::Ledger;
use haystore_tests::rounds::{for_seeds, run};
use haystore_tests::world::{World, quiet_options};
use object_store::ClientOptions;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BUCKET: &str = "logs";

/// A running server; it ends with its test.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Server {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let program = std::env::var("MOTO_SERVER").unwrap_or_else(|_| "moto_server".to_string());
        let mut command = Command::new(&program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|e| panic!("{program}: {e}; install it with pip install 'moto[server]==5.2.*'"));
        let server = Server { child, port };
        let began = Instant::now();
        while !server.makes_bucket() {
            assert!(began.elapsed() < Duration::from_secs(60), "{program} does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    fn makes_bucket(&self) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "PUT /{BUCKET} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nContent-Length: 0\r\n\r\n", self.port)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        };
        ask().is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    /// The objects below `prefix`.
    fn objects(&self, prefix: &str) -> Arc<dyn Objects> {
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_bucket_name(BUCKET)
            .with_region("us-east-1")
            .with_access_key_id("test")
            .with_secret_access_key("test")
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .build()
            .unwrap();
        Arc::new(RemoteObjects::new(Arc::new(store), prefix, format!("s3://{BUCKET}/{prefix}")).unwrap())
    }
}

#[test]
fn a_store_in_a_bucket_answers_as_the_model_does() {
    let server = Server::start();
    for_seeds(3, |seed| {
        let objects = server.objects(&format!("model/{seed}"));
        async move { Play::new(World::with_objects(seed, objects, quiet()), seed, false).await.steps(16).await }
    });
}

/// Four processes commit to one manifest at once: each commit counts once, and all see the same history.
#[test]
fn conditional_puts_order_four_committers() {
    const COMMITS: usize = 12;
    let server = Server::start();
    run(async {
        let open = || async { Manifest::open(server.objects("manifest"), Arc::new(SystemEnvironment)).await.unwrap() };
        let mut committers = Vec::new();
        for committer in 0..4 {
            let manifest = open().await;
            committers.push(tokio::spawn(async move {
                for n in 0..COMMITS {
                    let begin = || JobChange::Begin { tenant: Tenant::default(), key: format!("{committer}-{n}") };
                    manifest.commit(|_| Ok(Delta { jobs: vec![begin()], ..Delta::default() })).await.unwrap();
                }
                manifest
            }));
        }
        let mut manifests = vec![open().await];
        for committer in committers {
            manifests.push(committer.await.unwrap());
        }
        let mut states = Vec::new();
        for manifest in &manifests {
            states.push(manifest.refresh().await.unwrap());
        }
        for state in &states {
            assert_eq!(state.version(), 4 * COMMITS as u64);
            let epochs: BTreeSet<u64> = state.jobs().map(|(_, _, job)| job.epoch).collect();
            assert_eq!(epochs, (1..=4 * COMMITS as u64).collect(), "each version was made by one commit");
            assert_eq!(**state, *states[0]);
        }
    });
}

/// Failures, lost replies and delays in front of the server.
#[test]
fn a_bucket_that_fails_and_loses_replies_loses_no_records() {
    let server = Server::start();
    for_seeds(2, |seed| {
        let plan = FaultPlan {
            seed,
            error_before_per_mille: 60,
            error_after_per_mille: 60,
            delay_per_mille: 30,
            delay_max: Duration::from_millis(30),
        };
        let faulty = Arc::new(Faulty::new(server.objects(&format!("faulty/{seed}")), plan));
        let policy = RetryPolicy { tries_max: 10, pause_min: Duration::from_millis(2), pause_max: Duration::from_millis(50) };
        let objects = Arc::new(Retrying::new(faulty, policy));
        async move {
            let options =
                Options { flush_bytes: 20 << 10, flush_age: Duration::from_millis(100), grace: Duration::ZERO, ..quiet_options() };
            let mut world = World::with_objects(seed, objects, options);
            let (ledger, tenant) = (Ledger::default(), Tenant::default());
            for _ in 0..3 {
                let store = world.open().await;
                for n in 0..25 {
                    let (number, batch) = ledger.batch(1 + n % 13);
                    store.append(&tenant, batch).await.unwrap();
                    ledger.keep(number);
                    if n % 9 == 8 {
                        store.flush().await.unwrap();
                    }
                }
                store.compact().await.unwrap();
                ledger.check(&everything(&store, &tenant).await.unwrap()).unwrap();
                world.crash();
                drop(store);
            }
            ledger.check(&everything(&world.open().await, &tenant).await.unwrap()).unwrap();
        }
    });
}
