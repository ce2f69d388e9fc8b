//! One checkpoint as lines.

use checkrein_shared::records::Checkpoint;

use super::facts::shortened;
use super::why::claim_lines;
use super::{Output, shown};

/// A checkpoint, whole.
pub(crate) fn checkpoint_lines(out: &Output, checkpoint: &Checkpoint) -> Vec<String> {
    let short = |digest: checkrein_shared::digest::Digest| shortened(&digest.to_string());
    let ids = |steps: &[checkrein_shared::ids::StepId]| {
        if steps.is_empty() {
            return "none".to_owned();
        }
        steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let author = &checkpoint.author;
    let mut lines = vec![
        out.bold(checkpoint.checkpoint_id.as_str()),
        format!("  written     {} by {} {}", checkpoint.created_at, author.role.as_str(), author.instance),
        format!(
            "  because of  {}{}",
            checkpoint.trigger.as_str(),
            if checkpoint.gate { ", waits for a decision" } else { "" }
        ),
        format!("  attempt     {}, at event {}", checkpoint.epoch, checkpoint.state_version),
        format!("  objective   {}", shown(&checkpoint.objective.text)),
        format!(
            "  plan        version {}, done: {}",
            checkpoint.plan.version,
            ids(&checkpoint.plan.completed_step_ids)
        ),
        format!("              to come: {}", ids(&checkpoint.plan.pending_step_ids)),
        format!("  base        {}", short(checkpoint.workspace.base)),
        format!("  tree        {}", short(checkpoint.workspace.tree)),
        format!("  change      {} ({})", checkpoint.changesets.proposed.id, short(checkpoint.changesets.proposed.hash)),
        format!("  confined    {}", shown(&checkpoint.workspace.confinement)),
        format!("  runtime     {}", shown(&checkpoint.runtime_version)),
        format!("  policy      {}", short(checkpoint.policy_digest)),
        format!("  evidence    {}", short(checkpoint.evidence.index)),
    ];
    let refs = checkpoint.evidence.test_run_ids.iter().chain(&checkpoint.evidence.tool_event_ids);
    for reference in refs.chain(&checkpoint.evidence.artifact_refs) {
        lines.push(format!("              {}", shown(reference.as_str())));
    }
    for issue in checkpoint.open_errors.iter().chain(&checkpoint.open_issues) {
        lines.push(format!("  open        {} {}", issue.severity.as_str(), shown(&issue.text)));
    }
    if !checkpoint.summary.completed.is_empty() {
        lines.push("  claims".to_owned());
        lines.extend(checkpoint.summary.completed.iter().flat_map(|claim| claim_lines(out, claim)));
    }
    if !checkpoint.summary.next.is_empty() {
        lines.push("  next".to_owned());
        lines.extend(checkpoint.summary.next.iter().flat_map(|claim| claim_lines(out, claim)));
    }
    let previous = checkpoint.integrity.previous_checkpoint_hash;
    lines.push(format!("  follows     {}", previous.map_or_else(|| "nothing: it is the first".to_owned(), short)));
    lines.push(format!("  hash        {}", checkpoint.integrity.checkpoint_hash));
    lines
}
