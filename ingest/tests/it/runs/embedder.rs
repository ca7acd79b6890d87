//! With the embedder, and with libraries that are none.

use super::*;

/// The library that the set-up has installed; the tests are run after it.
pub(super) fn installed() -> Places {
    let places = Places::from_env(None, None);
    let onnxruntime = places.onnxruntime().unwrap_or_else(|e| panic!("{e}; run deploy/setup"));
    let model = places.model(DEFAULT_MODEL).unwrap_or_else(|_| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models").join(DEFAULT_MODEL)
    });
    Places {
        model_dir: Some(fs::canonicalize(model).unwrap()),
        onnxruntime: Some(onnxruntime),
        ..Places::default()
    }
}

/// A run with the default embedder and this library.
fn command(world: &World, library: &Path) -> Command {
    let mut command = world.program();
    let model = installed().model_dir.unwrap();
    command.args(["--json", "--source", SOURCE, "--data"]).arg(world.data());
    command.arg("--model-dir").arg(model).arg("--onnxruntime").arg(library);
    command
}

/// A shared library made of this C text.
fn library(world: &World, name: &str, text: &str) -> Option<PathBuf> {
    let source = world.path(name).with_extension("c");
    fs::write(&source, text).unwrap();
    let library = world.path(name);
    let built =
        world.hermetic("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    match built {
        Ok(output) if output.status.success() => Some(library),
        other => {
            skip(&format!("no C compiler: {other:?}"));
            None
        }
    }
}

/// A remote that counts how often it is asked.
fn source(world: &World) {
    write(world, "guide.md", "# Guide\n\nRestart it.\n");
}

#[track_caller]
fn refused(world: &World, library: &Path, says: &[&str]) {
    let run = world.finish(command(world, library).output().unwrap()).expect(1, "failed");
    run.says(says).says(&["hint: ", "deploy/setup", "--embedder none"]);
    let left = names(&world.data());
    assert!(
        left.iter().all(|n| !["generations", "current", "source"].contains(&n.as_str())),
        "{left:?}"
    );
}

#[test]
fn only_new_and_changed_text_is_embedded() {
    let world = World::new();
    let library = installed().onnxruntime.unwrap();
    write(&world, "guide.md", "# Guide\n\n## Stop\n\nStop it.\n\n## Start\n\nStart it.\n");
    write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `df -h`.\n");
    let ingest = || world.finish(command(&world, &library).output().unwrap());
    let first = ingest().expect(0, "published");
    let windows = first.count("windows");
    assert!(windows >= 3 && first.count("reused") == 0, "{first}");
    assert_eq!(world.generation().vectors.unwrap().len() as u64, windows);
    ingest().expect(0, "up_to_date");
    write(&world, "disk.md", "# Disk\n\n## Full\n\nRun `du -sh`.\n");
    let second = ingest().expect(0, "published");
    assert_eq!(second.count("windows"), windows);
    let reused = second.count("reused");
    assert!(reused > 0 && reused < windows, "{second}");
    // Without an embedder it is another generation, and back again nothing is computed anew.
    world.ingest(SOURCE, &[]).expect(0, "published");
    assert!(world.generation().vectors.is_none());
    let third = ingest().expect(0, "published");
    assert_eq!((third.state().as_str(), third.count("reused")), ("OptionMismatch", windows));
    // A cache that is damaged costs time, not truth.
    let cache = world.data().join("cache");
    let dir = if cache.is_dir() { cache } else { world.data() };
    for name in names(&dir).iter().filter(|n| n.ends_with(".vectors")) {
        flip(&dir.join(name));
    }
    write(&world, "guide.md", "# Guide\n\n## Stop\n\nStop it.\n\n## Start\n\nStart it!\n");
    ingest().expect(0, "published");
}

/// What a generation says, without its time.
fn content(world: &World) -> BTreeMap<String, String> {
    let mut files = world.generation().manifest.files;
    files.retain(|name, _| !name.starts_with("lexical/") && !name.starts_with("vectors/graph"));
    files.into_iter().map(|(name, entry)| (name, entry.blake3)).collect()
}

#[test]
fn a_generation_made_from_the_one_before_is_the_one_made_from_nothing() {
    let (world, fresh) = (World::new(), World::new());
    let library = installed().onnxruntime.unwrap();
    let page = |n: u32, text: &str| {
        let steps: String = (0..8).map(|s| format!("## Step {s}\n\n{text} {n} {s}.\n\n")).collect();
        format!("# Page {n}\n\n{steps}```sh\necho {n}\n")
    };
    for n in 0..16 {
        write(&world, &format!("{n}.md"), &page(n, "Do"));
    }
    let ingest = |world: &World| world.finish(command(world, &library).output().unwrap());
    ingest(&world).expect(0, "published");
    assert!(!content(&world).contains_key("vectors/points.u32"));
    // One page changes, one goes, one comes, and one is another's by name.
    let texts = [("3.md", page(3, "Undo")), ("9.md", "# Nine\n".into()), ("1.md", page(2, "Do"))];
    fs::remove_file(world.path(SOURCE).join("5.md")).unwrap();
    for (name, text) in &texts {
        write(&world, name, text);
    }
    for entry in fs::read_dir(world.path(SOURCE)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = fs::read_to_string(world.path(SOURCE).join(&name)).unwrap();
        write(&fresh, &name, &text);
    }
    let run = ingest(&world).expect(0, "published");
    let anew = ingest(&fresh).expect(0, "published");
    for key in ["problems", "warnings", "sections", "chunks", "windows"] {
        assert_eq!(run.report()[key], anew.report()[key], "{key}");
    }
    assert!(run.count("reused") > 0 && anew.count("reused") == 0);
    let mut made = content(&world);
    assert!(made.remove("vectors/points.u32").is_some(), "the graph was built anew");
    assert_eq!(made, content(&fresh));
    let graph = world.generation().manifest.graph.unwrap();
    assert!(graph.recall_at_10 >= 0.99, "{graph:?}");
}

#[test]
fn a_library_that_is_not_there_is_named_before_anything_is_fetched() {
    let world = World::new();
    source(&world);
    refused(&world, &world.path("nowhere.so"), &["was not found", "nowhere.so"]);
    let remote = world.remote("remote.git", "main");
    remote.commit("main", &[("guide.md", "# Guide\n")]);
    let mut command = command(&world, &world.path("nowhere.so"));
    command.args(["--source", &remote.url()]);
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut command = world.program();
    let at = args.iter().position(|a| a == "--source").unwrap();
    command.args(args[..at].iter().chain(&args[at + 2..]));
    let run = world.finish(command.output().unwrap()).expect(1, "failed");
    run.says(&["was not found", "nowhere.so", "hint: "]);
    assert!(!world.data().join("source").exists());
}

#[test]
fn a_model_that_is_not_there_is_named_with_the_places() {
    let world = World::new();
    source(&world);
    let mut command = world.program();
    command.args(["--json", "--source", SOURCE, "--embedder", "no-such-model", "--data", "data"]);
    let run = world.finish(command.output().unwrap()).expect(1, "failed");
    run.says(&["`no-such-model` was not found", "/usr/share/runbook-ask/models", "hint: "]);
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let world = World::new();
    source(&world);
    fs::write(world.path("text.so"), "this is no library\n").unwrap();
    refused(&world, &world.path("text.so"), &["text.so", "cannot be loaded as a library"]);
    fs::write(world.path("empty.so"), "").unwrap();
    refused(&world, &world.path("empty.so"), &["empty.so", "cannot be loaded as a library"]);
    fs::create_dir(world.path("dir.so")).unwrap();
    refused(&world, &world.path("dir.so"), &["dir.so"]);
}

#[test]
fn a_library_of_another_kind_is_refused() {
    let world = World::new();
    source(&world);
    let Some(other) = library(&world, "other.so", "int answer(void) { return 42; }\n") else {
        return;
    };
    refused(&world, &other, &["other.so", "is not ONNX Runtime", "OrtGetApiBase"]);
    let null = "const void *OrtGetApiBase(void) { return 0; }\n";
    let Some(null) = library(&world, "null.so", null) else { return };
    refused(&world, &null, &["null.so", "is not ONNX Runtime"]);
}

#[test]
fn a_library_that_is_too_old_is_refused_with_both_versions() {
    let world = World::new();
    source(&world);
    for (version, says) in
        [("1.20.0", "is ONNX Runtime 1.20.0"), ("rubbish", "is ONNX Runtime rubbish")]
    {
        let text = format!(
            "static const char *version(void) {{ return \"{version}\"; }}\n\
                 static const void *api(unsigned v) {{ (void)v; return 0; }}\n\
                 static const struct {{ const void *(*api)(unsigned); const char *(*version)(void); }}\n\
                 base = {{ api, version }};\n\
                 const void *OrtGetApiBase(void) {{ return &base; }}\n"
        );
        let Some(old) = library(&world, "old.so", &text) else { return };
        refused(&world, &old, &["old.so", says, "needs 1.", "or newer"]);
    }
}

#[test]
fn a_library_that_never_finishes_loading_is_given_up() {
    let world = World::new();
    source(&world);
    let text = "#include <unistd.h>\n\
                    __attribute__((constructor)) static void stay(void) { for (;;) pause(); }\n";
    let Some(slow) = library(&world, "a slow: one.so", text) else { return };
    // With a generation to keep, more is said, by more of the program.
    for is_first in [true, false] {
        if !is_first {
            world.ingest(SOURCE, &[]).expect(0, "published");
        }
        let start = Instant::now();
        let mut command = command(&world, &slow);
        command.env("RUNBOOK_ONNX_LOAD_S", "1");
        let run = world.finish(command.output().unwrap()).expect(1, "failed");
        run.says(&["a slow: one.so", "did not finish loading within 1 s", "hint: "]);
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    }
    assert_eq!(world.documents(), ["guide.md"]);
}
