//! `evidence list` and `evidence get`.

use checkrein_shared::api;
use checkrein_shared::digest::Digest;

use crate::args::EvidenceCommand;
use crate::client::{Session, find_task};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{columns, shortened, shown};

/// Carries out a command about evidence.
pub(crate) async fn run(context: &Context, command: EvidenceCommand) -> Result<Exit, Failure> {
    let session = Session::open(context).await?;
    match command {
        EvidenceCommand::List { task } => list(context, &session, &task).await?,
        EvidenceCommand::Get { task, reference } => get(context, &session, &task, &reference).await?,
    }
    session.close().await?;
    Ok(Exit::Completed)
}

async fn list(context: &Context, session: &Session, task: &str) -> Result<(), Failure> {
    let id = find_task(session.api(), task).await?.id;
    let artifacts = session.api().evidence(&id).await?;
    let out = &context.out;
    out.object(&artifacts)?;
    if artifacts.is_empty() {
        out.note(format!("task {id} has no evidence yet"));
    }
    let rows: Vec<[String; 5]> = artifacts
        .iter()
        .map(|artifact| {
            let evidence = &artifact.evidence;
            [
                shown(artifact.reference.as_str()).into_owned(),
                format!("{} bytes", evidence.size),
                evidence.media_type.clone(),
                format!("{} {}", evidence.produced_by.role.as_str(), evidence.produced_by.instance),
                shortened(&evidence.digest.to_string()),
            ]
        })
        .collect();
    columns(&rows).iter().for_each(|line| out.line(line));
    Ok(())
}

async fn get(context: &Context, session: &Session, task: &str, reference: &str) -> Result<(), Failure> {
    let (digest, is_listed) = match reference.parse::<Digest>() {
        Ok(digest) => (digest, false),
        Err(_) => {
            let id = find_task(session.api(), task).await?.id;
            let artifacts = session.api().evidence(&id).await?;
            // A ref can be made anew, by a later attempt: the newest counts.
            let found = artifacts.iter().rev().find(|artifact| artifact.reference.as_str() == reference);
            let none = || {
                Failure::usage(format!("task {id} has no evidence `{reference}`"))
                    .hint(format!("`checkrein evidence list {id}` lists it"))
            };
            (found.ok_or_else(none)?.evidence.digest, true)
        }
    };
    let bytes = session.api().blob(digest).await.map_err(|error| match error {
        api::Error::NotFound(_) if is_listed => {
            Failure::new(Exit::Integrity, format!("the evidence `{reference}` is missing ({digest})"))
                .hint("`checkrein store verify` says what else is wrong and what to do")
        }
        other => other.into(),
    })?;
    context.out.raw(&bytes);
    Ok(())
}
