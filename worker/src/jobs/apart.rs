//! Runs a command in a copy of the scratch that is thrown away: checks, probes
//! and dry runs, whose traces nobody wants.

use std::ffi::OsString;
use std::time::Duration;

use checkrein_shared::process;

use crate::desk::{Desk, JobError};
use crate::environment;
use crate::execute::{self, Call, Ran};
use crate::ground::Ground;
use crate::room::Room;

/// A command that runs apart.
pub(super) struct Apart<'a> {
    pub(super) argv: &'a [String],
    pub(super) time: Duration,
    /// Variables besides those that every command gets.
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// Runs it in a room of its own.
pub(super) async fn run(
    desk: &Desk,
    ground: &Ground,
    apart: Apart<'_>,
) -> Result<Result<Ran, process::Error>, JobError> {
    let room = desk.services.cache.room(&desk.job)?;
    let ran = in_room(desk, &room, ground, apart).await;
    room.close().await;
    ran
}

async fn in_room(
    desk: &Desk,
    room: &Room,
    ground: &Ground,
    apart: Apart<'_>,
) -> Result<Result<Ran, process::Error>, JobError> {
    ground.cut(desk, room).await?;
    let host = &desk.services.config.environment;
    let mut variables = environment::scrubbed(host, &room.home(), &room.temporary());
    variables.extend(apart.variables);
    let call = Call {
        argv: apart.argv,
        variables,
        time: apart.time,
        target: &ground.target,
        agent: None,
        confinement_required: desk.policy.confinement_required(),
        patient: false,
    };
    Ok(execute::run(&desk.services, room, call, &desk.orders).await)
}
