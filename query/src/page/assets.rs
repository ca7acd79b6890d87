//! Style, script and icon: part of the program, under paths that hold their hash, so that a browser
//! may keep them forever and never shows an old one.

use std::sync::LazyLock;

/// A file of the page.
pub struct Asset {
    /// Its path, with its hash.
    pub path: String,
    /// Its content type.
    pub kind: &'static str,
    /// What it holds.
    pub content: &'static str,
}

/// All files of the page.
pub struct Assets {
    /// The style sheet.
    pub style: Asset,
    /// The script.
    pub script: Asset,
    /// The icon.
    pub icon: Asset,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: asset("css", "text/css; charset=utf-8", include_str!("assets/page.css")),
    script: asset("js", "text/javascript; charset=utf-8", include_str!("assets/page.js")),
    icon: asset("svg", "image/svg+xml", include_str!("assets/icon.svg")),
});

fn asset(extension: &str, kind: &'static str, content: &'static str) -> Asset {
    let hash = blake3::hash(content.as_bytes()).to_hex();
    Asset { path: format!("/assets/page-{}.{extension}", &hash[..16]), kind, content }
}

/// The files.
#[must_use]
pub fn assets() -> &'static Assets {
    &ASSETS
}

/// The file at a path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    [&ASSETS.style, &ASSETS.script, &ASSETS.icon].into_iter().find(|a| a.path == path)
}
