//! The world outside: a server on loopback that does things when it is asked, and
//! counts them. What it has done stays done, whoever was killed meanwhile.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a request takes before and after the thing is done: long enough to be killed in.
const BEFORE: Duration = Duration::from_millis(60);
const AFTER: Duration = Duration::from_millis(150);

/// What was done, by name: the idempotency key of each request that was carried out.
type Done = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

pub(crate) struct Outside {
    port: u16,
    done: Done,
}

impl Outside {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let done = Done::default();
        let doing = Arc::clone(&done);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let doing = Arc::clone(&doing);
                // A client that is gone is none of the server's business.
                thread::spawn(move || drop(serve(stream, &doing)));
            }
        });
        Self { port, done }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How often a thing was done.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.done.lock().unwrap().get(name).map_or(0, Vec::len)
    }
}

/// `do NAME KEY` does it; `once NAME KEY` does it unless that key has been seen; `ask NAME` says yes or no.
fn serve(mut stream: TcpStream, done: &Done) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut line = String::new();
    BufReader::new(stream.try_clone()?).read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (verb, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_owned());
    let key = words.next().unwrap_or_default().to_owned();
    if verb == "ask" {
        let answer = if done.lock().unwrap().contains_key(&name) { "yes" } else { "no" };
        return writeln!(stream, "{answer}");
    }
    thread::sleep(BEFORE);
    let mut all = done.lock().unwrap();
    let keys = all.entry(name).or_default();
    if verb == "do" || !keys.contains(&key) {
        keys.push(key);
    }
    drop(all);
    thread::sleep(AFTER);
    writeln!(stream, "done")
}
