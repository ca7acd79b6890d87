//! Loading the ONNX Runtime library without the ways in which that can go wrong.
//!
//! `ort` loads the library on first use and panics where it is missing, too old, or not a library
//! of this kind; a library whose start-up code blocks would block the program. So the library is
//! loaded by another process first, then opened here on a thread of its own, both against a deadline;
//! its version is read through the one function whose shape never changes (`OrtGetApiBase`, see
//! onnxruntime_c_api.h), and only then is `ort` told to use it.
#![expect(unsafe_code, reason = "opening a shared library and calling its C entry point")]

use crate::error::Hint;
use crate::limits::ONNX_LOAD_SECONDS_MAX;
use ort::environment::Environment;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// The version of the library that the set-up installs, and the tests run against.
pub const ONNX_VERSION: &str = "1.32.0";
/// The file name of the library in the official wheel.
pub const ONNX_FILE_NAME: &str = "libonnxruntime.so.1.32.0";

/// Why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// No such file in any place that is searched.
    #[error("the ONNX Runtime library was not found; searched: {}", list(.searched))]
    Missing {
        /// The files that were tried, in order.
        searched: Vec<PathBuf>,
    },
    /// The loader refused the file.
    #[error("`{}` cannot be loaded as a library: {message}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        message: String,
    },
    /// The file is a library, but not ONNX Runtime.
    #[error("`{}` is not ONNX Runtime: it has no function `OrtGetApiBase`", path.display())]
    NotOnnx {
        /// The file.
        path: PathBuf,
    },
    /// The library is older than this program needs.
    #[error("`{}` is ONNX Runtime {found}; this program needs 1.{needed} or newer", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// The version it says it has.
        found: String,
        /// The minor version that is needed.
        needed: u32,
    },
    /// The library's start-up code does not return.
    #[error("`{}` did not finish loading within {seconds} s", path.display())]
    Hangs {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The library is fine, its environment cannot be made.
    #[error("ONNX Runtime `{}` did not start: {message}", path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// What the library said.
        message: String,
    },
}

impl Hint for OnnxError {
    fn hint(&self) -> Option<String> {
        Some(format!(
            "run `deploy/setup` (it installs ONNX Runtime {ONNX_VERSION}), or name a library with \
             --onnxruntime or ORT_DYLIB_PATH, or use --embedder none"
        ))
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", ")
}

/// Set when a library is still loading on its thread: the loader's lock is held, so exit handlers
/// would wait for it for ever.
static HANGING: AtomicBool = AtomicBool::new(false);

/// Ends the process at once, without exit handlers, when a library is still loading; else returns.
/// Programs call this last, with their exit code.
pub fn leave_if_hanging(code: u8) {
    if HANGING.load(Ordering::Relaxed) {
        // SAFETY: `_exit` takes an integer and does not return; nothing is left to be flushed.
        unsafe { libc::_exit(i32::from(code)) }
    }
}

/// The environment once it is made: one a process, kept until the end.
static ENVIRONMENT: Mutex<Option<(PathBuf, Environment)>> = Mutex::new(None);

/// Checks the library and starts ONNX Runtime with it; a second call returns the same environment.
///
/// # Errors
/// Every way in which the library can be unusable.
pub fn start(path: &Path) -> Result<Environment, OnnxError> {
    let mut slot = ENVIRONMENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, environment)) = &*slot {
        return Ok(environment.clone());
    }
    preflight(path)?;
    let failed = |message: String| OnnxError::Start { path: path.to_owned(), message };
    let environment = ort::init_from(path)
        .map_err(|e| failed(e.to_string()))?
        .with_name("runbook-ask")
        .with_telemetry(false)
        .build()
        .map_err(|e| failed(e.to_string()))?;
    *slot = Some((path.to_owned(), environment.clone()));
    Ok(environment)
}

/// Opens the library against a deadline and reads its version.
///
/// # Errors
/// Every way in which the library can be unusable, `Start` and `Missing` with other paths excepted.
pub fn preflight(path: &Path) -> Result<String, OnnxError> {
    if !path.is_file() {
        return Err(OnnxError::Missing { searched: vec![path.to_owned()] });
    }
    // A bare name would send the loader to its own search path.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let seconds = load_seconds_max();
    load_elsewhere(path, seconds)?;
    let (sender, receiver) = mpsc::channel();
    let file = path.to_owned();
    let spawned = std::thread::Builder::new().name("onnx-preflight".into()).spawn(move || {
        // A closed channel means that the deadline has passed; nobody waits for the result.
        let _ = sender.send(read_version(&file));
    });
    if let Err(e) = spawned {
        return Err(OnnxError::Load { path: path.to_owned(), message: e.to_string() });
    }
    match receiver.recv_timeout(Duration::from_secs(seconds)) {
        Ok(version) => version.and_then(|v| check_version(path, v)),
        Err(_) => {
            HANGING.store(true, Ordering::Relaxed);
            Err(OnnxError::Hangs { path: path.to_owned(), seconds })
        }
    }
}

/// Loads the library in a process of its own first. Start-up code that never returns holds the
/// loader's lock, and a process in which that is held stops at its next thread or thread-local value,
/// before it could even say so; therefore it must not happen in this one.
fn load_elsewhere(path: &Path, seconds: u64) -> Result<(), OnnxError> {
    let Ok(library) = std::fs::File::open(path) else { return Ok(()) }; // The loader will say why.
    // As standard input, since a name in LD_PRELOAD may hold no space and no colon.
    let started = Command::new("/bin/true")
        .env("LD_PRELOAD", "/proc/self/fd/0")
        .stdin(library)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return Ok(()) }; // Then the thread alone has the deadline.
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= deadline {
            // It may end just now; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
            return Err(OnnxError::Hangs { path: path.to_owned(), seconds });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// `RUNBOOK_ONNX_LOAD_S`, for a disk that needs longer or a test that cannot wait; else the limit.
fn load_seconds_max() -> u64 {
    let told = std::env::var("RUNBOOK_ONNX_LOAD_S").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(ONNX_LOAD_SECONDS_MAX)
}

fn check_version(path: &Path, version: String) -> Result<String, OnnxError> {
    let needed = ort::MINOR_VERSION;
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if (major, minor) < (1, needed) {
        return Err(OnnxError::TooOld { path: path.to_owned(), found: version, needed });
    }
    Ok(version)
}

/// The head of `OrtApiBase` in onnxruntime_c_api.h.
#[repr(C)]
struct ApiBase {
    get_api: unsafe extern "C" fn(u32) -> *const std::ffi::c_void,
    get_version: unsafe extern "C" fn() -> *const c_char,
}

fn read_version(path: &Path) -> Result<String, OnnxError> {
    // SAFETY: loading runs the library's initialisers. The file is the one the operator named or
    // the set-up installed; that it is ONNX Runtime is what this function finds out.
    let library = unsafe { libloading::Library::new(path) }
        .map_err(|e| OnnxError::Load { path: path.to_owned(), message: loader_message(&e) })?;
    // SAFETY: `OrtGetApiBase` has had this signature in every release (onnxruntime_c_api.h).
    let base = unsafe { library.get::<unsafe extern "C" fn() -> *const ApiBase>(b"OrtGetApiBase") }
        .map_err(|_| OnnxError::NotOnnx { path: path.to_owned() })?;
    // SAFETY: the function takes nothing and returns a pointer to a static table, or null.
    let version = unsafe {
        let base = base();
        if base.is_null() {
            return Err(OnnxError::NotOnnx { path: path.to_owned() });
        }
        let text = ((*base).get_version)();
        if text.is_null() {
            return Err(OnnxError::NotOnnx { path: path.to_owned() });
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    };
    // The library stays loaded: `ort` opens it again at once, and unloading would only cost time.
    std::mem::forget(library);
    Ok(version)
}

fn loader_message(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
