//! How much memory an idle `checkrein up` holds.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{folder, report};

const LIMIT_MIB: f64 = 60.0;

/// It has settled when it has run for so long.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) fn run() {
    let what = "memory of an idle `checkrein up`";
    let Some(binary) = binary() else {
        println!("{what}: not run: build it with `cargo build --release`, or set CHECKREIN_BENCH_BINARY");
        return;
    };
    match measure(&binary) {
        Ok(mib) => report(what, &format!("{mib:.0} MiB"), "< 60 MiB", mib < LIMIT_MIB),
        Err(why) => println!("{what}: not run: {why}"),
    }
}

/// The program that was built beside this benchmark.
fn binary() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("checkrein"));
    std::env::var_os("CHECKREIN_BENCH_BINARY").map(PathBuf::from).or_else(beside).filter(|path| path.exists())
}

fn measure(binary: &Path) -> Result<f64, String> {
    let data = folder();
    let mut child = Command::new(binary)
        .arg("--data")
        .arg(data.path())
        .arg("up")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let started = Instant::now();
    let mut result = Ok(0.0);
    while started.elapsed() < SETTLED && result.is_ok() {
        std::thread::sleep(Duration::from_millis(100));
        result = resident(&mut child);
    }
    let _gone = child.kill();
    let _status = child.wait();
    result
}

/// The resident memory of a process that is still running, in MiB.
fn resident(child: &mut Child) -> Result<f64, String> {
    if let Ok(Some(status)) = child.try_wait() {
        return Err(format!("`checkrein up` ended by itself: {status}"));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| "the kernel does not tell its memory".to_owned())
}
