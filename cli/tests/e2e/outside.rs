//! The world outside a task: a server that counts who calls, and may never answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The exit code that its command shall have.
    Exit(i32),
    /// Nothing: the command waits until it is killed.
    Never,
}

type Rule = Box<dyn FnMut(&str) -> Reply + Send>;

/// Whatever kills Checkrein does not touch it: it is the truth about what happened.
pub(crate) struct Outside {
    port: u16,
    calls: Arc<Mutex<Vec<String>>>,
    rule: Arc<Mutex<Rule>>,
}

impl Outside {
    /// A server that answers each call so.
    pub(crate) fn new(rule: impl FnMut(&str) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(rule)));
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (heard, rules) = (Arc::clone(&calls), Arc::clone(&rule));
        std::thread::spawn(move || {
            let mut waiting: Vec<TcpStream> = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(call) = line(&stream) else { continue };
                let reply = (rules.lock().unwrap())(&call);
                heard.lock().unwrap().push(call);
                match reply {
                    Reply::Exit(code) => drop(writeln!(&stream, "{code}")),
                    Reply::Never => waiting.push(stream),
                }
            }
        });
        Self { port, calls, rule }
    }

    /// From now on it answers so.
    pub(crate) fn answers(&self, rule: impl FnMut(&str) -> Reply + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// A command, as a YAML list, that calls with `text` and ends as it is told.
    pub(crate) fn call(&self, text: &str) -> String {
        let port = self.port;
        format!(
            "[bash, -c, 'exec 3<>/dev/tcp/127.0.0.1/{port}; echo \"{text}\" >&3; read -r -u 3 code; exit \"$code\"']"
        )
    }

    /// The calls that begin so.
    pub(crate) fn calls(&self, with: &str) -> Vec<String> {
        self.calls.lock().unwrap().iter().filter(|call| call.starts_with(with)).cloned().collect()
    }
}

fn line(stream: &TcpStream) -> Option<String> {
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text).ok().filter(|length| *length > 0)?;
    Some(text.trim_end().to_owned())
}
