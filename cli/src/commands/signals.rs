//! Ctrl-C and SIGTERM: the first parks what runs, the second ends at once.

use std::io::Write as _;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;

/// Tells when the first signal came.
pub(crate) struct Signals(CancellationToken);

impl Signals {
    /// Listens from now on; `doing` is what the first signal makes this process do. A second signal ends the process: what it started dies with it, and the next start goes on
    /// from the last checkpoint.
    pub(crate) fn listen(doing: &'static str) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::caused("can't listen to signals", &error);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let first = CancellationToken::new();
        let token = first.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if token.is_cancelled() {
                    std::process::exit(i32::from(Exit::Interrupted.code()));
                }
                let _ = writeln!(std::io::stderr(), "\n{doing} (once more ends at once)");
                token.cancel();
            }
        });
        Ok(Self(first))
    }

    /// Waits for the first signal.
    pub(crate) async fn first(&self) {
        self.0.cancelled().await;
    }
}
