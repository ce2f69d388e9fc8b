//! What a step goes back to whose save point is lost: the newest moment that holds
//! all work that was done before the step. Pure; restoring it is done elsewhere.

use checkrein_shared::digest::Digest;
use checkrein_shared::ids::StepId;
use checkrein_shared::records::{Checkpoint, Role, SavePoint};

/// An earlier moment of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A checkpoint, by its name.
    Checkpoint(String),
    /// The beginning of the step.
    Beginning,
}

/// What a step goes back to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Back {
    pub(super) tree: Digest,
    pub(super) place: Place,
    /// The run state that belongs to the tree, if it is this conversation's.
    pub(super) run_state: Option<Digest>,
}

impl Back {
    /// `None` where the files of nothing that is known hold all work that was done before the step.
    pub(super) fn of(saved: &SavePoint, head: Option<&Checkpoint>, completed: &[StepId]) -> Option<Self> {
        let head = head.filter(|head| head.workspace.base == saved.base);
        let at = |head: &Checkpoint, run_state| Self {
            tree: head.workspace.tree,
            place: Place::Checkpoint(head.checkpoint_id.to_string()),
            run_state,
        };
        let Some(began) = saved.began else {
            // Nobody noted the beginning: a checkpoint will do that has the work of every completed step. Whose run
            // state it has can't be told.
            let has_all = |head: &&Checkpoint| completed.iter().all(|s| head.plan.completed_step_ids.contains(s));
            return head.filter(has_all).map(|head| at(head, None));
        };
        match head {
            // It was written after the first save point, and nobody else moved the files since then.
            Some(head) if head.epoch >= began.epoch => {
                // An attempt names only what it saved itself; the orchestrator takes over what came before.
                let is_at_work = head.plan.current_step_id.as_ref() == Some(&saved.step);
                let is_mine = is_at_work || head.plan.completed_step_ids.contains(&saved.step);
                let is_mine = is_mine && head.author.role == Role::Worker;
                Some(at(head, head.resume.run_state.filter(|_| is_mine)))
            }
            // The step before ended with it: its run state belongs to another conversation.
            Some(head) if head.workspace.tree == began.tree => Some(at(head, None)),
            _ => Some(Self { tree: began.tree, place: Place::Beginning, run_state: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use checkrein_shared::records::{RunStateRef, StepBegan};

    use super::*;

    const CHECKPOINT: &str = include_str!("../../../shared/tests/golden/records/checkpoint.json");

    fn step(id: &str) -> StepId {
        id.parse().unwrap()
    }

    /// A checkpoint of attempt 5, written while step `work` was at work.
    fn head() -> Checkpoint {
        let mut head: Checkpoint = serde_json::from_str(CHECKPOINT).unwrap();
        head.epoch = 5;
        head.author.role = Role::Worker;
        (head.workspace.base, head.workspace.tree) = (Digest::of("base"), Digest::of("head's tree"));
        head.plan.completed_step_ids = vec![step("first")];
        head.plan.current_step_id = Some(step("work"));
        head.resume.run_state = Some(Digest::of("head's state"));
        head
    }

    fn saved(began: Option<(u64, &str)>) -> SavePoint {
        SavePoint {
            epoch: 9,
            step: step("work"),
            run_state: RunStateRef { digest: Digest::of("state"), turns: 0, tokens_used: 0, tokens_total: 0 },
            base: Digest::of("base"),
            tree: Digest::of("lost"),
            evidence_index: None,
            began: began.map(|(epoch, tree)| StepBegan { epoch, tree: Digest::of(tree) }),
        }
    }

    fn name(head: &Checkpoint) -> Place {
        Place::Checkpoint(head.checkpoint_id.to_string())
    }

    #[test]
    fn the_work_of_steps_that_ended_without_a_checkpoint_is_not_lost() {
        let saved = saved(Some((6, "first's tree")));
        let beginning = Back { tree: Digest::of("first's tree"), place: Place::Beginning, run_state: None };
        let completed = [step("first"), step("second")];
        assert_eq!(Back::of(&saved, None, &completed), Some(beginning));
        let back = Back::of(&saved, Some(&head()), &completed).unwrap();
        assert_eq!((back.tree, back.place), (Digest::of("first's tree"), Place::Beginning));
        assert_eq!(back.run_state, None, "the head's belongs to its own tree");
    }

    #[test]
    fn a_checkpoint_of_the_same_step_is_nearer_than_its_beginning() {
        let saved = saved(Some((5, "first's tree")));
        let back = Back::of(&saved, Some(&head()), &[step("first")]).unwrap();
        let state = Some(Digest::of("head's state"));
        assert_eq!(back, Back { tree: Digest::of("head's tree"), place: name(&head()), run_state: state });
        // One that completed the step, and was sent back.
        let mut gate = head();
        gate.plan.current_step_id = None;
        gate.plan.completed_step_ids.push(step("work"));
        assert_eq!(Back::of(&saved, Some(&gate), &[step("first")]).unwrap().run_state, state);
        // Not on this base.
        gate.workspace.base = Digest::of("another base");
        assert_eq!(Back::of(&saved, Some(&gate), &[]).unwrap().place, Place::Beginning);
    }

    #[test]
    fn nobody_is_handed_the_run_state_of_another_step_or_conversation() {
        // The step began with the checkpoint that ended the one before.
        let back = Back::of(&saved(Some((6, "head's tree"))), Some(&head()), &[step("first")]).unwrap();
        assert_eq!(back, Back { tree: Digest::of("head's tree"), place: name(&head()), run_state: None });
        let since = saved(Some((5, "first's tree")));
        let mut other = head();
        other.plan.current_step_id = Some(step("other"));
        assert_eq!(Back::of(&since, Some(&other), &[]).unwrap().run_state, None);
        // The orchestrator's checkpoints take over the run state of those before.
        let mut control = head();
        control.author.role = Role::Orchestrator;
        assert_eq!(Back::of(&since, Some(&control), &[]).unwrap().run_state, None);
    }

    #[test]
    fn where_nobody_noted_the_beginning_the_checkpoint_must_have_all_work() {
        let back = Back::of(&saved(None), Some(&head()), &[step("first")]).unwrap();
        assert_eq!(back, Back { tree: Digest::of("head's tree"), place: name(&head()), run_state: None });
        assert_eq!(Back::of(&saved(None), Some(&head()), &[step("first"), step("second")]), None);
        assert_eq!(Back::of(&saved(None), None, &[]), None);
    }
}
