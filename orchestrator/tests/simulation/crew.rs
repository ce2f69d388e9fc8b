//! Workers and reviewers as processes: hired, killed, and hired again.

use std::rc::Rc;

use crate::exec::Process;
use crate::world::World;
use crate::{reviewer, worker};

/// Hires everybody who is not there.
pub(crate) fn hire_all(world: &Rc<World>) {
    let workers = (0..world.scenario.workers).map(|number| (format!("worker-{number}"), number, true));
    let reviewers = (0..world.scenario.reviewers).map(|number| (format!("reviewer-{number}"), number, false));
    for (name, number, works) in workers.chain(reviewers) {
        if world.crew.borrow().contains_key(&name) {
            continue;
        }
        let process = world.exec.process();
        world.crew.borrow_mut().insert(name, process);
        if works {
            world.exec.spawn(process, worker::run(world.clone(), process, number));
        } else {
            world.exec.spawn(process, reviewer::run(world.clone(), process, number));
        }
    }
}

/// Ends everybody at once.
pub(crate) fn kill_all(world: &World) {
    let crew = std::mem::take(&mut *world.crew.borrow_mut());
    crew.into_values().for_each(|process| end(world, process));
}

/// Ends one of them; somebody else takes the place soon.
pub(crate) fn kill_one(world: &Rc<World>) {
    let names: Vec<String> = world.crew.borrow().keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = world.rng.pick(&names).clone();
    let Some(process) = world.crew.borrow_mut().remove(&name) else { return };
    world.say(|| format!("{name} dies"));
    end(world, process);
}

fn end(world: &World, process: Process) {
    world.exec.kill(process);
    world.bus.release(process);
    for target in world.targets.borrow_mut().values_mut().filter(|target| target.locked_by == Some(process)) {
        target.locked_by = None;
    }
}
