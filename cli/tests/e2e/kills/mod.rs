//! Kills `checkrein run` with SIGKILL at random moments, resumes it to its end, and
//! counts outside what its steps did there.
//!
//! `CHECKREIN_KILLS` says how many kills altogether (a few without it); the moments
//! come from `CHECKREIN_KILLS_SEED`, although no machine hits the same instruction twice.

mod story;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use story::{Kind, Story};

/// How many stories are told at the same time; most of them wait most of the time.
const AT_ONCE: usize = 4;

/// How many kills there are where nobody says it.
const KILLS: u64 = 24;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn however_often_it_is_killed_nothing_is_lost_and_nothing_happens_twice() {
    let wanted = number("CHECKREIN_KILLS", KILLS);
    let seed = number("CHECKREIN_KILLS_SEED", 1);
    let killed = AtomicU64::new(0);
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for lane in 0..AT_ONCE as u64 {
            let (killed, told) = (&killed, &told);
            scope.spawn(move || {
                for number in (lane..).step_by(AT_ONCE) {
                    // Every kind is told at least once, however quickly the kills are used up.
                    if killed.load(Ordering::Relaxed) >= wanted && number >= Kind::ALL.len() as u64 {
                        return;
                    }
                    let kind = Kind::ALL[usize::try_from(number).unwrap() % Kind::ALL.len()];
                    let story = Story::new(kind, seed.wrapping_mul(1_000).wrapping_add(number));
                    let kills = story.tell(wanted.saturating_sub(killed.load(Ordering::Relaxed)).max(2));
                    killed.fetch_add(kills, Ordering::Relaxed);
                    told.lock().unwrap().push((kind, kills));
                }
            });
        }
    });
    let told = told.into_inner().unwrap();
    println!("{} kills in {} runs: {told:?}", killed.load(Ordering::Relaxed), told.len());
    assert!(killed.load(Ordering::Relaxed) >= wanted, "too few kills");
}
