//! Fourth stage: the specification in force, and what is known to be open.

use checkrein_shared::blob::Blobs;
use checkrein_shared::records::{Finding, ReviewRequest, TaskSpec};

use super::load::record;
use crate::error::Stop;

/// What a change is held against.
pub(super) struct Risks {
    pub(super) spec: TaskSpec,
    pub(super) open: Vec<Finding>,
}

/// Reads both.
pub(super) async fn read(blobs: &dyn Blobs, request: &ReviewRequest) -> Result<Risks, Stop> {
    Ok(Risks {
        spec: record(blobs, request.spec, "the specification in force").await?,
        open: record(blobs, request.open_findings, "the list of open findings").await?,
    })
}
