//! `doctor`: what this machine offers, and what is missing.
//!
//! It changes nothing but for a file in the data folder, where it tries whether
//! that can be written, and removes again.

mod checks;

use checkrein_shared::api::Tone;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::shown;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Grade {
    /// As it should be.
    Good,
    /// It works, with less.
    Less,
    /// It does not work.
    Bad,
}

/// One check.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    grade: Grade,
    text: String,
    /// What to do, where something is to do.
    hint: Option<String>,
}

impl Finding {
    fn new(name: &'static str, grade: Grade, text: impl Into<String>) -> Self {
        Self { name, grade, text: text.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Runs every check.
pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut findings = checks::programs();
    findings.push(checks::data_folder(&context.data));
    findings.push(checks::disk_space(&context.data));
    findings.extend(checks::supervisor().await);
    findings.push(checks::instance(context).await);
    findings.push(checks::agents());
    let out = &context.out;
    out.object(&findings)?;
    for finding in &findings {
        let (tone, mark) = match finding.grade {
            Grade::Good => (Tone::Good, "ok  "),
            Grade::Less => (Tone::Ask, "less"),
            Grade::Bad => (Tone::Bad, "bad "),
        };
        out.line(format!("{} {:<12} {}", out.toned(tone, mark), finding.name, shown(&finding.text)));
        if let Some(hint) = &finding.hint {
            out.line(format!("                  try: {}", shown(hint)));
        }
    }
    let bad = findings.iter().any(|finding| finding.grade == Grade::Bad);
    Ok(if bad { Exit::Unable } else { Exit::Completed })
}
