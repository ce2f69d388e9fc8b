//! The gate before a call that needs somebody's consent: dry run, checkpoint,
//! park. Nothing of the call itself has run, and the next attempt asks again.

use std::time::Duration;

use checkrein_shared::causes::with_causes;
use checkrein_shared::digest::Digest;
use checkrein_shared::process;
use checkrein_shared::records::{Basis, Claim, EffectCall, EvidenceKind, EvidenceRef, Step, Trigger};
use checkrein_shared::time::Timestamp;
use serde::Serialize;

use super::apart::{self, Apart};
use super::{End, step};
use crate::desk::{Desk, JobError};
use crate::effects::{self, KEY_VARIABLE};
use crate::failure;
use crate::ground::Ground;
use crate::orders::Order;
use crate::propose::{self, Difference, Proposal};
use crate::recorder::Recorder;
use crate::trigger::Occasion;

/// How long a dry run may take.
const DRY_RUN_TIME_MAX: Duration = Duration::from_secs(600);

/// A call that waits for consent.
pub(super) struct Proposed<'a> {
    pub(super) step: &'a Step,
    pub(super) call: &'a EffectCall,
    pub(super) dry_run: Option<Vec<String>>,
    pub(super) why: String,
}

/// The call as evidence: what is agreed to is exactly this.
#[derive(Serialize)]
struct Shown<'a> {
    key: Digest,
    call_hash: Digest,
    call: &'a EffectCall,
}

/// What the dry run came to.
struct DryRun {
    log: EvidenceRef,
    confinement: String,
}

/// Runs the dry run, writes the checkpoint that shows the call, and parks.
pub(super) async fn reach(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    proposed: Proposed<'_>,
) -> Result<End, JobError> {
    let Proposed { step, call, dry_run, why } = proposed;
    let mut refs = Vec::new();
    let mut confinement = "none: nothing ran".to_owned();
    if let Some(argv) = dry_run {
        match run_dry(desk, recorder, ground, step, call, &argv).await? {
            Ok(dry) => {
                refs.push(dry.log);
                confinement = dry.confinement;
            }
            Err(why) if desk.orders.now() < Order::Exit => {
                let failure = step::failure(&desk.services, &desk.job, &step.id, "dry run", why);
                return Ok(End::report(failure));
            }
            Err(_) => return Ok(super::step_end::interrupted_early(desk, ground)),
        }
    }
    let key = effects::key_of(&desk.job, call);
    let call_hash = call.hash();
    let reference = EffectCall::shown_as(&step.id, call_hash);
    let shown = Shown { key, call_hash, call };
    recorder.add_record(reference.clone(), "application/json", &shown, Timestamp::now()).await?;
    refs.insert(0, reference);
    ground.report_drift(desk).await?;
    let difference = Difference::between(desk, &ground.base, &ground.tree).await;
    let text = format!("step `{}` has not started: {why}", step.id);
    let proposal = Proposal {
        occasion: Occasion { trigger: Trigger::ToolBeforeHighRisk, gate: true },
        base: &ground.base,
        tree: &ground.tree,
        difference: &difference,
        completes: None,
        claims: vec![Claim { text, refs, basis: Basis::SelfReported }],
        issues: Vec::new(),
        errors: Vec::new(),
        git_commit: ground.git_commit.clone(),
        confinement,
    };
    let sent = propose::checkpoint(desk, recorder, proposal).await?;
    Ok(End::parked(&sent))
}

/// Runs the dry run and keeps what it printed. One that fails is a reason not to ask anybody.
async fn run_dry(
    desk: &Desk,
    recorder: &mut Recorder,
    ground: &Ground,
    step: &Step,
    call: &EffectCall,
    argv: &[String],
) -> Result<Result<DryRun, String>, JobError> {
    let key = effects::key_of(&desk.job, call).to_hex();
    let variables = vec![
        (KEY_VARIABLE.into(), key.into()),
        ("CHECKREIN_TASK".into(), desk.job.task_id.as_str().into()),
        ("CHECKREIN_STEP".into(), step.id.as_str().into()),
    ];
    let ran = match apart::run(desk, ground, Apart { argv, time: DRY_RUN_TIME_MAX, variables }).await? {
        Ok(ran) => ran,
        Err(process::Error::Refused(refusal)) => {
            return Ok(Err(format!("its dry run can't run: {}", with_causes(&refusal))));
        }
        Err(error) => return Err(JobError::Process(error)),
    };
    let log = propose::named(EvidenceKind::Log, &format!("dry-run-{}-e{}", step.id, desk.job.epoch));
    let kept = recorder.add(log.clone(), "text/plain", &ran.output, ran.dropped_bytes, Timestamp::now()).await?;
    if !ran.finished.ending.is_success() {
        let lines = failure::last_lines(&kept).join("\n");
        let how = failure::ending_text(ran.finished.ending);
        return Ok(Err(format!("its dry run failed: {how}\n{lines}").trim_end().to_owned()));
    }
    Ok(Ok(DryRun { log, confinement: ran.finished.confinement }))
}
