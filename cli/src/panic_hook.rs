//! What people see when the program has a bug.

use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Installs the hook: two lines for people instead of a dump.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        // Where nobody reads it there is nobody to tell.
        let _ = std::io::stderr().write_all(text(info).as_bytes());
    }));
}

fn text(info: &PanicHookInfo<'_>) -> String {
    let at = info.location().map_or_else(String::new, |at| format!("  at: {}:{}\n", at.file(), at.line()));
    let message = info.payload_as_str().unwrap_or("no message");
    format!(
        "error: this is a bug in checkrein: {message}\n{at}  try: the same command again; tasks go on from their last \
         checkpoint. Please report it with these lines.\n"
    )
}
