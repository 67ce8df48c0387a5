//! The listening socket, its connections, and the orderly end of both.
//!
//! What holds: at most `connections_max` connections are open; a head that does not arrive in time closes its connection;
//! after the signal to stop no connection is accepted, requests in flight end within `shutdown_wait_max` or are cut, and then
//! the store is closed.

use super::config::ServeConfig;
use super::router;
use super::stall::StallGuard;
use super::state::App;
use anyhow::Context as _;
use haystore::Store;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// How long a request's head may take to arrive on an open connection.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long to wait when the system refuses a new connection, say for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The most bytes of one request's head, and of what waits to be written beside the answer's pieces.
const CONNECTION_BUFFER_BYTES: usize = 128 << 10;

/// Serves `store` at `config.listen` until SIGINT or SIGTERM, then finishes what is in flight and closes the store.
/// `listening` is told the address, with the port that the system chose when port 0 was asked for.
///
/// # Errors
/// When the address cannot be listened on, or the store does not close.
pub async fn serve(store: Store, config: ServeConfig, listening: impl FnOnce(SocketAddr)) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.listen).await.with_context(|| format!("cannot listen on {}", config.listen))?;
    listening(listener.local_addr().unwrap_or(config.listen));
    let stop = stop_signal().context("cannot wait for signals")?;
    serve_until(listener, store, config, stop).await
}

/// As [`serve`], on a socket that listens already, until `stop` is done.
///
/// # Errors
/// When the store does not close.
pub async fn serve_until(
    listener: TcpListener,
    store: Store,
    config: ServeConfig,
    stop: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let app = App::new(store.clone(), config.clone());
    let connections = accept(listener, &app, stop).await;
    finish(connections, config.shutdown_wait_max).await;
    store.close().await.context("the store did not close")?;
    tracing::info!("stopped");
    Ok(())
}

struct Connections {
    tasks: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

async fn accept(listener: TcpListener, app: &App, stop: impl Future<Output = ()> + Send) -> Connections {
    let router = router(app.clone());
    let places = Arc::new(Semaphore::new(app.config.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let (stopping, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            // A place first: without one, connections wait in the system's queue.
            let place = places.clone().acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = next => accepted,
        };
        match accepted {
            None => break,
            Some((Ok((stream, _)), place)) => {
                tasks.spawn(connection(stream, router.clone(), app.clone(), stopped.clone(), place));
            }
            Some((Err(e), _)) => {
                tracing::warn!(error = %e, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while tasks.try_join_next().is_some() {}
    }
    Connections { tasks, stopping }
}

async fn connection(stream: TcpStream, router: axum::Router, app: App, mut stopped: watch::Receiver<bool>, place: OwnedSemaphorePermit) {
    let _place = place;
    let _open = app.metrics.connection();
    // Answers are written in large pieces; waiting to fill a packet only delays their last one.
    let _ = stream.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(StallGuard::new(stream, app.config.stall_max)), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = async { let _ = stopped.wait_for(|stopped| *stopped).await; } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(e) = outcome {
        tracing::debug!(error = %e, "a connection ended with an error");
    }
}

async fn finish(mut connections: Connections, wait_max: Duration) {
    let _ = connections.stopping.send(true);
    let all = async { while connections.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(wait_max, all).await.is_err() {
        tracing::warn!(connections = connections.tasks.len(), "requests in flight were cut");
        connections.tasks.shutdown().await;
    }
}

#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: requests in flight are finished");
    })
}

#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
