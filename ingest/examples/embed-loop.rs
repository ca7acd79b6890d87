//! What embedding alone takes for a directory of Markdown: the bare loop over the texts that ingest
//! embeds, one text a run, on so many threads, and nothing else.
//!
//! ```text
//! cargo run --release -p runbook-ingest --example embed-loop -- DIR [EVERY] [THREADS]
//! ```
//!
//! EVERY takes each n-th text in the order of their lengths (default 1), THREADS is the number of cores
//! by default. CPU seconds are of the loop alone, without loading the model.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for measuring")]

use runbook_ingest::read::Reader;
use runbook_ingest::report::Report;
use runbook_ingest::reuse::Documents;
use runbook_ingest::select::Selection;
use runbook_ingest::windows::windows;
use runbook_shared::embed::{self, Embedder};
use runbook_shared::locate::Places;
use runbook_shared::secrets::Policy;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = args.first() else {
        eprintln!("usage: embed-loop DIR [EVERY] [THREADS]");
        return Ok(());
    };
    let number = |at: usize, usual: usize| {
        args.get(at).map_or(Ok(usual), |text| text.parse::<usize>().map(|n| n.max(1)))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (every, threads) = (number(1, 1)?, number(2, cores)?);
    let places = Places::from_env(None, None);
    let embedder = embed::open(&places, None, threads)?.ok_or("there is no embedder")?;
    let counter = embedder.token_counter()?;
    let reader = Reader::Dir(PathBuf::from(dir));
    let mut report = Report::default();
    let candidates = reader.list(&Selection::new(None, &[], &[])?, &mut report)?;
    let documents = reader.documents(
        &candidates,
        None,
        &counter,
        &Policy::default(),
        Documents::default(),
        &mut report,
    );
    let all: Vec<String> = documents
        .iter()
        .flat_map(|d| &d.chunks)
        .flat_map(|c| c.sections.iter().map(move |s| (c, s)))
        .flat_map(|(chunk, section)| windows(chunk, section, &counter))
        .map(|window| window.text)
        .collect();
    let different: BTreeSet<&String> = all.iter().collect();
    let mut texts: Vec<&String> = different.into_iter().collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let tokens = |texts: &[&String]| texts.iter().map(|t| counter.count(t) + 2).sum::<usize>();
    println!("{} windows, {} different texts, {} tokens", all.len(), texts.len(), tokens(&texts));
    let chosen: Vec<&String> = texts.into_iter().step_by(every).collect();
    // Each thread has its session before the clock starts.
    let embed = |texts: &[&String]| -> Result<(), embed::EmbedError> {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let work = || {
                while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    embedder.embed_passage(text, &[])?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|t| t.join().unwrap_or(Ok(())))
        })
    };
    embed(&chosen[..chosen.len().min(8 * threads)])?;
    let (since, cpu) = (Instant::now(), cpu_seconds());
    embed(&chosen)?;
    let (wall, cpu) = (since.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!(
        "{} texts, {} tokens on {threads} threads: {wall:.1} s, {cpu:.1} CPU seconds, {:.2} CPU ms a text",
        chosen.len(),
        tokens(&chosen),
        cpu * 1e3 / chosen.len().max(1) as f64
    );
    Ok(())
}

/// User and system time of this process (proc(5), stat, fields 14 and 15, in hundredths).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or("");
    let fields = after_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}
