//! The world outside: a server that counts who rings, and answers with an exit code.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Counts rings. Confined commands can reach it, and nothing that happens to their files matters to it.
pub(crate) struct Bell {
    port: u16,
    rings: Arc<Mutex<Vec<String>>>,
}

impl Bell {
    /// Answers every ring with `answer(ring)`, the exit code that the command shall have.
    pub(crate) fn new(answer: impl Fn(&str) -> i32 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rings = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&rings);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(ring) = line(&stream) else { continue };
                let code = answer(&ring);
                heard.lock().unwrap().push(ring);
                let _ = writeln!(&stream, "{code}");
            }
        });
        Self { port, rings }
    }

    /// A line for bash that rings with `text` and ends as it is told.
    pub(crate) fn ring(&self, text: &str) -> String {
        let port = self.port;
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo \"{text}\" >&3; read -r -u 3 code; exit \"$code\"")
    }

    /// What was rung so far.
    pub(crate) fn rings(&self) -> Vec<String> {
        self.rings.lock().unwrap().clone()
    }
}

fn line(stream: &TcpStream) -> Option<String> {
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).ok().filter(|length| *length > 0)?;
    Some(text.trim_end().to_owned())
}
