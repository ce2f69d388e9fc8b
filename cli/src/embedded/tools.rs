//! Where verifiers find programs, and where these keep their files.
//!
//! Only places, never credentials.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::context::home;

/// Variables that name a place, and the place below the home folder where it is unset.
const PLACES: [(&str, Option<&str>); 9] = [
    ("RUSTUP_HOME", Some(".rustup")),
    ("CARGO_HOME", Some(".cargo")),
    ("GOPATH", Some("go")),
    ("GOROOT", None),
    ("JAVA_HOME", None),
    ("NVM_DIR", None),
    ("PYENV_ROOT", Some(".pyenv")),
    ("VOLTA_HOME", Some(".volta")),
    ("RUSTUP_TOOLCHAIN", None),
];

/// The search path for programs.
pub(super) fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// The variables that are set, or whose usual place exists.
pub(super) fn environment() -> BTreeMap<OsString, OsString> {
    let place = |(name, usual): &(&str, Option<&str>)| {
        let set = std::env::var_os(name).filter(|value| !value.is_empty());
        let usual = || Some(home()?.join((*usual)?)).filter(|path| path.is_dir()).map(OsString::from);
        set.or_else(usual).map(|value| (OsString::from(name), value))
    };
    PLACES.iter().filter_map(place).collect()
}
