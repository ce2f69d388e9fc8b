//! One task, killed again and again until it is done, and what must then be true.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::outside::{Outside, Reply};
use crate::support::World;

/// How the effect of a story can be told apart after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing happens outside.
    Plain,
    /// The other side honours the key.
    Key,
    /// A probe tells.
    Probe,
    /// Nothing tells: a person has to look.
    Neither,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Key, Self::Neither, Self::Probe, Self::Plain];

    /// The step that acts outside.
    fn step(self, outside: &Outside) -> String {
        let (run, how) = match self {
            Self::Plain => ("[cat, answer.txt]".to_owned(), String::new()),
            Self::Key => {
                (outside.call("once $CHECKREIN_IDEMPOTENCY_KEY"), ", effect: effectful, idempotent: true".to_owned())
            }
            Self::Probe => {
                let probe = outside.call("ask $CHECKREIN_IDEMPOTENCY_KEY");
                (
                    outside.call("do $CHECKREIN_IDEMPOTENCY_KEY"),
                    format!(", effect: effectful, timeout: 2s, probe: {probe}"),
                )
            }
            Self::Neither => (outside.call("do $CHECKREIN_IDEMPOTENCY_KEY"), ", effect: effectful".to_owned()),
        };
        format!("- {{id: send, run: {run}, needs: [write]{how}}}")
    }
}

/// How long a request takes before and after the thing is done: long enough to be killed in.
const BEFORE: Duration = Duration::from_millis(60);
const AFTER: Duration = Duration::from_millis(150);

/// What was done outside: the key of each request that was carried out.
type Done = Arc<Mutex<Vec<String>>>;

/// `do KEY` does it; `once KEY` does it unless that key has been seen; `ask KEY` says whether it was done.
fn serve(call: &str, done: &Done) -> Reply {
    let (verb, key) = call.split_once(' ').expect("every call names its key");
    if verb == "ask" {
        return Reply::Exit(i32::from(!done.lock().unwrap().iter().any(|seen| seen == key)));
    }
    std::thread::sleep(BEFORE);
    let mut keys = done.lock().unwrap();
    if verb == "do" || !keys.iter().any(|seen| seen == key) {
        keys.push(key.to_owned());
    }
    drop(keys);
    std::thread::sleep(AFTER);
    Reply::Exit(0)
}

/// The most kills of one story: a run that is killed for ever never shows how it ends.
const KILLS_MAX: u64 = 30;

pub(crate) struct Story {
    kind: Kind,
    world: World,
    done: Done,
    random: u64,
}

impl Story {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let done = Done::default();
        let doing = Arc::clone(&done);
        let outside = Outside::new(move |call| serve(call, &doing));
        let world = World::new("sed -i s/41/42/ answer.txt");
        let step = kind.step(&outside);
        let task = format!(
            "task: write and send\nobjective: answer.txt must say 42, and somebody must be told.\nworkspace: ./project\n\
             policy: policy.yaml\nagent: {{command: [./agent.sh]}}\nplan:\n- {{id: write, prompt: write 42}}\n{step}\n"
        );
        world.write("task.yaml", &task);
        Self { kind, world, done, random: seed }
    }

    /// Tells it to its end; says how often it was killed.
    pub(crate) fn tell(mut self, kills_max: u64) -> u64 {
        let mut kills = 0;
        let mut rounds = 0;
        while kills < kills_max.min(KILLS_MAX) {
            rounds += 1;
            if self.is_completed() {
                break;
            }
            assert!(rounds < 200, "it does not come to an end");
            match self.run_or_kill() {
                None => kills += 1,
                Some(0) => break,
                Some(4) => self.answer(),
                Some(code) => panic!("a resumed run ended with {code}:\n{}", self.world.read("run.log")),
            }
        }
        self.finish();
        self.check();
        kills
    }

    /// Starts it and kills it after a random time; its exit code where it was faster.
    fn run_or_kill(&mut self) -> Option<i32> {
        let mut child = self.world.command(&["run", "task.yaml"]);
        let log = File::options().create(true).append(true).open(self.world.path("run.log")).unwrap();
        let mut child = child.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        std::thread::sleep(self.moment());
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        None
    }

    /// A moment in the first two seconds; early ones are likelier, because a resumed run has less left to do.
    fn moment(&mut self) -> Duration {
        // SplitMix64: a generator that fits here and needs no library.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        let share = (z % 1_000) * (z / 1_000 % 1_000) / 1_000;
        Duration::from_millis(20 + 2 * share)
    }

    /// Runs it to its end without any more kills.
    fn finish(&self) {
        for _ in 0..12 {
            if self.is_completed() {
                return;
            }
            match self.world.run(&["run", "task.yaml"]) {
                ran if ran.code == 0 => return,
                ran if ran.code == 4 => self.answer(),
                ran => drop(ran.ends_with(0)),
            }
        }
        panic!("it did not come to an end: {}", self.world.task());
    }

    /// Whether it is done; a plain task would begin once more.
    fn is_completed(&self) -> bool {
        let (code, shown) = self.world.json(&["show", "last"]);
        code == 0 && shown[0]["summary"]["state"] == "completed"
    }

    /// Does what the person does who is asked: looks outside, and says what is there.
    fn answer(&self) {
        let (_, effects) = self.world.json(&["effects", "list", "last"]);
        let listed = effects.first().and_then(|list| list.as_array()).cloned().unwrap_or(effects);
        let unknown = listed.iter().find(|effect| effect["status"].get("unknown").is_some());
        if let Some(effect) = unknown {
            assert_eq!(self.kind, Kind::Neither, "only an effect that nothing can tell needs a person: {effect}");
            let key = effect["key"].as_str().unwrap();
            // Whoever looks while a request is still under way sees nothing, and would be wrong.
            std::thread::sleep(BEFORE + AFTER);
            let word = if self.done.lock().unwrap().is_empty() { "--not-done" } else { "--done" };
            self.world.run(&["effects", "settle", key, word, "--reason", "looked at the other side"]).ends_with(0);
            return;
        }
        // The kills have used up the attempts.
        self.world.run(&["approve", "last"]).ends_with(0);
    }

    /// What must be true however often it was killed.
    fn check(&self) {
        assert_eq!(self.world.read("project/answer.txt"), "42\n", "the target is as after an unkilled run");
        let names: Vec<_> =
            std::fs::read_dir(self.world.path("project")).unwrap().map(|e| e.unwrap().file_name()).collect();
        let strange = names.iter().find(|n| *n != "answer.txt" && *n != ".checkrein-apply");
        assert_eq!(strange, None, "nothing is left behind in the target");
        let sent = self.done.lock().unwrap().len();
        let expected = usize::from(self.kind != Kind::Plain);
        assert_eq!(sent, expected, "{:?}: what happens outside happens once", self.kind);
        let task = self.world.task();
        assert_eq!(task["applied"].as_array().unwrap().len(), 1, "{task}");
        let tasks = self.world.json(&["tasks"]).1;
        assert_eq!(tasks[0].as_array().map_or(tasks.len(), Vec::len), 1, "one task, however often it was started");
        self.world.run(&["checkpoint", "verify", "last"]).ends_with(0);
    }
}
