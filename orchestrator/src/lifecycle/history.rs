//! Keeping the state small: what no decision needs any more leaves it, and stays
//! as a row.
//!
//! The state is written whole with every event, so a long task must not carry its
//! past in it. Rows are for people and pages; no decision reads them. The last
//! turn's own records always stay, so that whoever shows the event finds them.

use std::collections::BTreeMap;

use checkrein_shared::digest::Digest;
use serde::Serialize;

use super::decision::Effect;
use super::task::{Grant, GrantStatus, VerdictState};
use super::turn::Turn;

/// Verdicts that left the state, by review id.
pub const VERDICT_TABLE: &str = "verdict";
/// Decisions that left the state, by event and content.
pub const RULING_TABLE: &str = "ruling";
/// Grants that left the state, by grant id.
pub const GRANT_TABLE: &str = "grant";

/// The most verdicts that stay, however many reviews there are.
const VERDICTS_MAX: usize = 24;
/// How many verdicts are remembered by name, so that one that comes twice counts once.
const JUDGED_MAX: usize = 24;
/// How many decisions stay.
const RULINGS_MAX: usize = 5;
/// How many grants stay that can't be used any more.
const SPENT_GRANTS_MAX: usize = 2;

impl Turn<'_> {
    /// Lets go of what is only history now.
    pub(super) fn retire(&mut self) {
        self.retire_verdicts();
        self.retire_rulings();
        self.retire_grants();
    }

    /// Of each review the newest answers stay: those to one checkpoint in one round.
    fn retire_verdicts(&mut self) {
        let place = |verdict: &VerdictState| (verdict.round, verdict.bindings.sequence);
        let mut newest: BTreeMap<String, (u32, u64)> = BTreeMap::new();
        for verdict in &self.task.verdicts {
            let known = newest.entry(verdict.review.clone()).or_insert_with(|| place(verdict));
            *known = place(verdict).max(*known);
        }
        let at = self.at;
        let stays = |v: &VerdictState| v.at == at || newest.get(&v.review) == Some(&place(v));
        let (mut stay, mut leave): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.task.verdicts).into_iter().partition(stays);
        if stay.len() > VERDICTS_MAX {
            leave.extend(stay.drain(..stay.len() - VERDICTS_MAX));
        }
        self.task.verdicts = stay;
        for verdict in leave {
            self.put_history(VERDICT_TABLE, verdict.id.to_string(), &verdict);
            if verdict.inherited_from.is_none() {
                self.task.judged.push(verdict.id);
            }
        }
        let too_many = self.task.judged.len().saturating_sub(JUDGED_MAX);
        self.task.judged.drain(..too_many);
    }

    fn retire_rulings(&mut self) {
        let mine = self.context.version + 1;
        let of_this_turn = self.task.rulings.iter().filter(|ruling| ruling.version == mine).count();
        let too_many = self.task.rulings.len().saturating_sub(RULINGS_MAX.max(of_this_turn));
        let leaving: Vec<_> = self.task.rulings.drain(..too_many).collect();
        for ruling in leaving {
            let text = serde_json::to_vec(&ruling).expect("a ruling is plain data");
            self.put_history(RULING_TABLE, format!("{:012}-{}", ruling.version, Digest::of(text).short()), &ruling);
        }
    }

    /// A grant that may still be used, or whose settlement may still come, stays.
    fn retire_grants(&mut self) {
        let spent = |g: &Grant| matches!(g.status, GrantStatus::Settled {} | GrantStatus::Void { .. });
        let mut too_many = self.task.grants.iter().filter(|g| spent(g)).count().saturating_sub(SPENT_GRANTS_MAX);
        let leaves = |g: &Grant| {
            let leaves = too_many > 0 && spent(g);
            too_many -= usize::from(leaves);
            leaves
        };
        let (leave, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.task.grants).into_iter().partition(leaves);
        self.task.grants = stay;
        for grant in leave {
            self.put_history(GRANT_TABLE, grant.id.to_string(), &grant);
        }
    }

    fn put_history<T: Serialize>(&mut self, table: &str, key: String, value: &T) {
        // The same decision twice in one turn is one row.
        if self.writes_row((table, &key)) {
            return;
        }
        let value = serde_json::to_value(value).expect("what leaves the state is plain data");
        self.effect(Effect::PutRow { table: table.to_owned(), key, value });
    }
}
