//! A project, an orchestrator of one table, and real workers around them.

mod agents;
mod bell;
mod bench;
mod coordinator;
mod reading;
mod tasks;

pub(crate) use bell::Bell;
pub(crate) use bench::{Bench, RunningWorker, WorkerOptions};
pub(crate) use coordinator::Link;
pub(crate) use reading::{is_running, text_of};
pub(crate) use tasks::{prompt, run, sh, task_id, task_of};

/// One test: a name that is a sentence, and what it does.
pub(crate) type Test = (&'static str, fn());

/// Runs an asynchronous test on threads of its own.
pub(crate) fn block_on<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test);
}

/// Names a test by its function.
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn tests() -> Vec<$crate::support::Test> {
            vec![$((stringify!($name), || $crate::support::block_on($name()))),*]
        }
    };
}
