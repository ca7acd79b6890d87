//! The listening loop: bounded connections, a deadline for headers and bodies, and a shutdown that lets
//! questions in flight finish. Where all are taken a silent one goes (`room`).

mod room;
mod slow;

use crate::access::Peer;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use room::Room;
use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

/// Connections at once: half of the descriptors that a process usually may have open.
const CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send its headers, also between requests.
const HEADERS_WITHIN: Duration = Duration::from_secs(15);
/// How long a client may take to send a body as a whole.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// How long questions in flight may take once the server stops.
const DRAIN: Duration = Duration::from_secs(15);

/// Where connections come in: one of them, or both.
#[derive(Debug, Default)]
pub struct Listeners {
    /// TCP.
    pub tcp: Option<TcpListener>,
    /// A Unix socket.
    pub unix: Option<UnixListener>,
}

impl Listeners {
    /// The next connection of any of them.
    async fn accept(&self) -> std::io::Result<(Either<TcpStream, UnixStream>, Peer)> {
        let tcp = async {
            match &self.tcp {
                None => std::future::pending().await,
                Some(listener) => listener.accept().await,
            }
        };
        let unix = async {
            match &self.unix {
                None => std::future::pending().await,
                Some(listener) => listener.accept().await,
            }
        };
        tokio::select! {
            accepted = tcp => accepted.map(|(stream, address)| {
                let _ = stream.set_nodelay(true);
                (Either::Left(stream), Peer::Address(address.ip().to_canonical()))
            }),
            accepted = unix => accepted.map(|(stream, _)| (Either::Right(stream), Peer::Unix)),
        }
    }
}

/// Serves until `shutdown` completes, then lets requests in flight finish.
///
/// # Errors
/// When connections cannot be accepted at all.
pub async fn run(
    listeners: Listeners,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let graceful = GracefulShutdown::new();
    let room = Room::new(CONNECTIONS_MAX);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let seat = tokio::select! {
            seat = room.seat() => seat?,
            () = &mut shutdown => break,
        };
        let (stream, peer) = tokio::select! {
            accepted = listeners.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(e) => {
                    // Out of descriptors, or the peer is gone already: others must not suffer.
                    tracing::warn!("cannot accept a connection: {e}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .max_buf_size(64 * 1024)
            .serve_connection(
                TokioIo::new(stream),
                seat.watched(TowerToHyperService::new(router.clone()), peer, BODY_WITHIN),
            );
        let connection = graceful.watch(connection);
        let number = seat.number();
        let task = tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::debug!("connection ended: {e}");
            }
            drop(seat);
        });
        room.ended_by(number, task.abort_handle());
    }
    drop(listeners);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish within {DRAIN:?}");
    }
    Ok(())
}
