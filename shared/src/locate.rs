//! Where the embedding model and the ONNX Runtime library are, without any environment.
//!
//! Searched in this order, for both: the flag; the environment variable (`RUNBOOK_MODEL_DIR`,
//! `ORT_DYLIB_PATH`); beside the program (`../share/runbook-ask`, `../lib/runbook-ask`); the
//! installed path (`/usr/share/runbook-ask`, `/usr/lib/runbook-ask`); the per-user cache that
//! `deploy/setup` fills (`$XDG_CACHE_HOME/runbook-ask`, else `~/.cache/runbook-ask`). A flag or a
//! variable that names nothing is an error, never a reason to look elsewhere.

use crate::onnx::{ONNX_FILE_NAME, ONNX_VERSION, OnnxError};
use std::path::{Path, PathBuf};

/// The name of the model that is part of the project.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2-int8";

/// What the process was told and where it runs; read once, so that the search itself is a function.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `--model-dir`.
    pub model_dir: Option<PathBuf>,
    /// `--onnxruntime`.
    pub onnxruntime: Option<PathBuf>,
    /// `RUNBOOK_MODEL_DIR`.
    pub env_model_dir: Option<PathBuf>,
    /// `ORT_DYLIB_PATH`.
    pub env_onnxruntime: Option<PathBuf>,
    /// The directory of the running program.
    pub exe_dir: Option<PathBuf>,
    /// The per-user cache, `.../runbook-ask`.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// Reads the environment of this process.
    #[must_use]
    pub fn from_env(model_dir: Option<PathBuf>, onnxruntime: Option<PathBuf>) -> Self {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Self {
            model_dir,
            onnxruntime,
            env_model_dir: var("RUNBOOK_MODEL_DIR"),
            env_onnxruntime: var("ORT_DYLIB_PATH"),
            exe_dir: std::env::current_exe()
                .and_then(std::fs::canonicalize)
                .ok()
                .and_then(|p| p.parent().map(Path::to_owned)),
            cache: var("XDG_CACHE_HOME")
                .or_else(|| var("HOME").map(|home| home.join(".cache")))
                .map(|dir| dir.join("runbook-ask")),
        }
    }

    /// Fills what neither a flag nor a variable names from a configuration file.
    #[must_use]
    pub fn or_file(mut self, model_dir: Option<PathBuf>, onnxruntime: Option<PathBuf>) -> Self {
        if self.env_model_dir.is_none() {
            self.model_dir = self.model_dir.or(model_dir);
        }
        if self.env_onnxruntime.is_none() {
            self.onnxruntime = self.onnxruntime.or(onnxruntime);
        }
        self
    }

    /// The directory of a model: it holds `model.onnx` and `tokenizer.json`.
    ///
    /// `name` is the name of a model, or a path (anything with a `/`).
    ///
    /// # Errors
    /// The places that were searched.
    pub fn model(&self, name: &str) -> Result<PathBuf, Vec<PathBuf>> {
        if name.contains('/') {
            return first_model(vec![PathBuf::from(name)]);
        }
        if let Some(dir) = self.model_dir.as_ref().or(self.env_model_dir.as_ref()) {
            return first_model(vec![dir.join(name), dir.clone()]);
        }
        let mut places = Vec::new();
        if let Some(exe) = &self.exe_dir {
            places.push(exe.join("../share/runbook-ask/models").join(name));
            // A program that runs from the build directory of a checkout: target/release.
            places.push(exe.join("../../shared/models").join(name));
        }
        places.push(Path::new("/usr/share/runbook-ask/models").join(name));
        if let Some(cache) = &self.cache {
            places.push(cache.join("models").join(name));
        }
        first_model(places)
    }

    /// The ONNX Runtime library.
    ///
    /// # Errors
    /// [`OnnxError::Missing`] with the places that were searched.
    pub fn onnxruntime(&self) -> Result<PathBuf, OnnxError> {
        if let Some(file) = self.onnxruntime.as_ref().or(self.env_onnxruntime.as_ref()) {
            return first_file(vec![file.clone()]);
        }
        let mut places = Vec::new();
        if let Some(exe) = &self.exe_dir {
            places.push(exe.join("../lib/runbook-ask").join(ONNX_FILE_NAME));
        }
        places.push(Path::new("/usr/lib/runbook-ask").join(ONNX_FILE_NAME));
        if let Some(cache) = &self.cache {
            places.push(cache.join("onnxruntime").join(ONNX_VERSION).join(ONNX_FILE_NAME));
        }
        first_file(places)
    }
}

fn first_model(places: Vec<PathBuf>) -> Result<PathBuf, Vec<PathBuf>> {
    let found = places
        .iter()
        .find(|dir| dir.join("model.onnx").is_file() && dir.join("tokenizer.json").is_file())
        .cloned();
    found.ok_or(places)
}

fn first_file(places: Vec<PathBuf>) -> Result<PathBuf, OnnxError> {
    let found = places.iter().find(|file| file.is_file()).cloned();
    found.ok_or(OnnxError::Missing { searched: places })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_place_that_holds_nothing_is_an_error() {
        let cache = tempfile::tempdir().unwrap();
        let model = cache.path().join("models/m");
        std::fs::create_dir_all(&model).unwrap();
        std::fs::write(model.join("model.onnx"), "").unwrap();
        std::fs::write(model.join("tokenizer.json"), "").unwrap();
        let places = Places { cache: Some(cache.path().to_owned()), ..Places::default() };
        assert_eq!(places.model("m").unwrap(), model);
        let told = Places { env_model_dir: Some("/nowhere".into()), ..places.clone() };
        assert_eq!(told.model("m").unwrap_err(), ["/nowhere/m", "/nowhere"].map(PathBuf::from));
        let parent = Places { model_dir: Some(cache.path().join("models")), ..told };
        assert_eq!(parent.model("m").unwrap(), model);
    }
}
