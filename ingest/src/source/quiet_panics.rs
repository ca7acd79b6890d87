//! Panics that are expected of a library and are no news to anybody.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The value, or none where its computation panics; nothing is printed then.
pub(super) fn catch<T>(compute: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let value = catch_unwind(AssertUnwindSafe(compute)).ok();
    QUIET.set(false);
    value
}
