//! `schema` and `completions`.

use checkrein_shared::records::schemas;
use checkrein_shared::{policy, task_file};
use serde_json::Value;

use crate::args::{self, CompletionsArgs, SchemaArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Every schema by name: records, and the files that people write.
fn all() -> Vec<(&'static str, Value)> {
    let records = schemas().into_iter().map(|(name, schema)| (name, Value::from(schema)));
    let files = [("policy", policy::file_schema()), ("task-file", Value::from(task_file::file_schema()))];
    let mut all: Vec<_> = records.chain(files).collect();
    all.sort_by_key(|(name, _)| *name);
    all
}

/// Prints a schema, or lists them.
pub(crate) fn schema(context: &Context, args: &SchemaArgs) -> Result<Exit, Failure> {
    let out = &context.out;
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let Some(wanted) = &args.name else {
        out.object(&names)?;
        names.iter().for_each(|name| out.line(name));
        return Ok(Exit::Completed);
    };
    let Some((_, schema)) = all.iter().find(|(name, _)| name == wanted) else {
        return Err(
            Failure::usage(format!("there is no schema `{wanted}`")).hint(format!("known: {}", names.join(", ")))
        );
    };
    out.object(schema)?;
    let text = serde_json::to_string_pretty(schema).map_err(|error| Failure::caused("can't write JSON", &error))?;
    out.line(text);
    Ok(Exit::Completed)
}

/// Prints completions.
pub(crate) fn completions(context: &Context, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "checkrein", &mut script);
    context.out.raw(&script);
    Ok(Exit::Completed)
}
