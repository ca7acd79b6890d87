//! A fuzzer for stable Rust: it changes known inputs, keeps those that do something new, and checks
//! that time grows with the input and no faster.
//!
//! A file of the tests of `ingest` and `query`, whose targets are in `tests/it/fuzz.rs`. A target is a
//! function of bytes; it panics where something is wrong, and returns what it saw as a number: an input
//! with a new number is kept and changed further. Inputs that once failed lie in
//! `fuzz/corpus/<target>/` and are tried first, always.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Seconds for each target, where RUNBOOK_FUZZ_SECONDS does not say otherwise.
const SECONDS: u64 = 4;
/// How much slower a byte of a long input may be than one of an input a quarter as long.
const SLOWER_MAX: f64 = 2.5;
/// Slower bytes are a failure from this time on, in nanoseconds; below it they are told.
const LONG_NS: u64 = 1_000_000_000;
/// Shorter times than this say nothing, in nanoseconds.
const NOISE_NS: u64 = 20_000_000;

pub(crate) struct Target<'a> {
    /// Its name, which is also its corpus's.
    pub(crate) name: &'static str,
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Words that matter to it.
    pub(crate) words: &'a [&'a str],
    /// The longest input, in bytes.
    pub(crate) bytes_max: usize,
    /// The length of inputs that are timed, in bytes; 0 where the input is bounded by a few kilobytes.
    pub(crate) timed_bytes: usize,
    /// The longest that one input may take.
    pub(crate) within: Duration,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13; // xorshift64
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name)
}

/// Nanoseconds that this thread has computed: other work on the machine does not count.
fn cpu_ns() -> u64 {
    std::thread::yield_now(); // The kernel adds up when it schedules.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Tries the corpus, then changed inputs for a while, then how time grows.
pub(crate) fn fuzz(target: &Target<'_>, act: impl Fn(&[u8]) -> u64) {
    let seconds = std::env::var("RUNBOOK_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let within = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let seed = std::env::var("RUNBOOK_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let clock = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |d| d.as_micros() as u64)
    };
    let seed: u64 = seed.unwrap_or_else(clock);
    eprintln!("{}: RUNBOOK_TEST_SEED={seed}", target.name);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut pool = target.seeds.clone();
    for entry in std::fs::read_dir(corpus(target.name)).into_iter().flatten() {
        pool.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    pool.push(Vec::new());
    let mut seen = BTreeSet::new();
    let (mut tried, mut slowest) = (0_u64, Duration::ZERO);
    for input in pool.clone() {
        let (sign, took) = once(target, &input, &act);
        seen.insert(sign);
        slowest = slowest.max(took);
    }
    let started = Instant::now();
    while started.elapsed() < within {
        let mut input = pool[random.below(pool.len())].clone();
        for _ in 0..=random.below(6) {
            change(&mut input, &pool, target.words, &mut random);
            input.truncate(target.bytes_max);
        }
        let (sign, took) = once(target, &input, &act);
        slowest = slowest.max(took);
        tried += 1;
        if seen.insert(sign) {
            pool.push(input);
        }
    }
    eprintln!(
        "{}: {tried} inputs in {:.0?}, {} kept, slowest {slowest:.1?}",
        target.name,
        started.elapsed(),
        pool.len()
    );
    if target.timed_bytes > 0 {
        time_grows_with_the_input(target, within, &mut random, &act);
    }
}

/// Acts on one input; what fails is written down. What ends the process, as an overflow of the stack
/// does, is found as `last`.
fn once(target: &Target<'_>, input: &[u8], act: &impl Fn(&[u8]) -> u64) -> (u64, Duration) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(target.name);
    let _ = std::fs::create_dir_all(&dir);
    let _ = std::fs::write(dir.join("last"), input);
    let before = cpu_ns();
    let done = catch_unwind(AssertUnwindSafe(|| act(input)));
    let took = Duration::from_nanos(cpu_ns().saturating_sub(before));
    let failed = match &done {
        Err(_) => "it panicked".to_owned(),
        Ok(_) if took > target.within => format!("it took {took:?}"),
        Ok(sign) => return (*sign, took),
    };
    let name = format!("{:016x}", hash(input));
    let _ = std::fs::write(dir.join(&name), input);
    panic!(
        "{}: {failed}; the input is {} ({} bytes): {:?}\nkeep it as fuzz/corpus/{}/{name}",
        target.name,
        dir.join(&name).display(),
        input.len(),
        String::from_utf8_lossy(&input[..input.len().min(300)]),
        target.name
    );
}

/// FNV-1a.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

fn change(input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let most = 1 << random.below(10);
    let end = (at + 1 + random.below(most)).min(input.len());
    match random.below(9) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => drop(input.drain(at.min(end)..end)),
        3 => {
            let part = input[at.min(end)..end].to_vec();
            let most = 1 << random.below(8);
            let times = 1 + random.below(most);
            for _ in 0..times {
                input.splice(at..at, part.iter().copied());
                if input.len() > 1 << 16 {
                    break;
                }
            }
        }
        4 | 5 if !words.is_empty() => {
            let word = words[random.below(words.len())].as_bytes();
            let times = if random.below(8) == 0 { 1 + random.below(200) } else { 1 };
            let many = word.repeat(times);
            input.splice(at..at, many);
        }
        6 => {
            let other = &pool[random.below(pool.len())];
            let from = random.below(other.len() + 1);
            let to = (from + 1 + random.below(2000)).min(other.len());
            input.splice(at..at, other[from.min(to)..to].iter().copied());
        }
        7 => {
            const ODD: [&str; 14] = [
                "\0",
                "\r",
                "\u{feff}",
                "\u{202e}",
                "\u{e9}",
                "\u{1f525}",
                "\u{0301}",
                "\u{2028}",
                "\t",
                "\\",
                "\u{10ffff}",
                "\u{ad}",
                "\r\n",
                "\u{130}",
            ];
            input.splice(at..at, ODD[random.below(ODD.len())].bytes());
        }
        _ => {
            let byte = random.below(256) as u8;
            input.insert(at, byte);
        }
    }
}

/// Repeats words, pairs of words and the seeds: an input that is four times as long may take four times
/// as long, with some room, and not sixteen times.
fn time_grows_with_the_input(
    target: &Target<'_>,
    within: Duration,
    random: &mut Random,
    act: &impl Fn(&[u8]) -> u64,
) {
    let mut units: Vec<Vec<u8>> = target.words.iter().map(|w| w.as_bytes().to_vec()).collect();
    units.extend(
        target
            .words
            .iter()
            .zip(target.words.iter().skip(1))
            .map(|(a, b)| format!("{a}{b}").into_bytes()),
    );
    units.extend(target.words.iter().map(|w| format!("{w}\n").into_bytes()));
    units.extend(target.words.iter().map(|w| format!("{w}a ").into_bytes()));
    units.retain(|u| !u.is_empty());
    let mut worst = (0.0, String::new());
    // In any order, for as long as the changed inputs were tried: in the long form all.
    let started = Instant::now();
    let mut timed = 0;
    while let (false, true) = (units.is_empty(), started.elapsed() < within) {
        let unit = &units.swap_remove(random.below(units.len()));
        timed += 1;
        let time = |bytes: usize, tries: usize| {
            let input = unit.repeat(bytes / unit.len() + 1);
            let run = || {
                let before = cpu_ns();
                let _ = act(&input);
                cpu_ns() - before
            };
            (0..tries).map(|_| run()).min().unwrap_or(0)
        };
        let long = time(target.timed_bytes, 1);
        if long < NOISE_NS {
            continue;
        }
        let short = time(target.timed_bytes / 4, 3);
        let slower = long as f64 / (4.0 * short.max(1) as f64);
        if slower > worst.0 {
            worst = (slower, String::from_utf8_lossy(unit).into_owned());
        }
        if slower > SLOWER_MAX {
            // Once more: a busy machine.
            let (long, short) = (time(target.timed_bytes, 3), time(target.timed_bytes / 4, 5));
            let slower = long as f64 / (4.0 * short.max(1) as f64);
            eprintln!(
                "{}: {:?} repeated: a byte takes {slower:.1} times as long, {} bytes {:.0?}",
                target.name,
                String::from_utf8_lossy(unit),
                target.timed_bytes,
                Duration::from_nanos(long)
            );
            assert!(
                slower <= SLOWER_MAX || long < LONG_NS,
                "{}: {unit:?} ({}), {} bytes of it: a byte takes {slower:.1} times as long as in a quarter",
                target.name,
                String::from_utf8_lossy(unit),
                target.timed_bytes
            );
        }
    }
    eprintln!(
        "{}: {timed} repeated: a byte of a long input takes at most {:.1} times as long ({:?})",
        target.name, worst.0, worst.1
    );
}
