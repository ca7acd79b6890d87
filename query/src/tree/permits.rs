//! How much runs at once: a few operations, some more that wait a moment, the rest is told to come again.

use super::error::TreeError;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long an operation waits for others to end.
const WAIT: Duration = Duration::from_secs(2);
/// Operations that may wait, for each that may run.
const WAITING_PER_RUNNING: usize = 16;

/// What runs and what waits.
#[derive(Default)]
pub struct Permits {
    held: Mutex<Running>,
    freed: Condvar,
}

#[derive(Default)]
struct Running {
    running: usize,
    waiting: usize,
}

/// Held while something runs.
pub struct Permit {
    permits: Arc<Permits>,
}

impl Permits {
    /// A place among `most` that run at once.
    ///
    /// # Errors
    /// [`TreeError::Busy`] when there is none within a moment.
    pub fn enter(permits: &Arc<Self>, most: usize) -> Result<Permit, TreeError> {
        let most = most.max(1);
        let mut held = permits.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.running >= most {
            if held.waiting >= most * WAITING_PER_RUNNING {
                return Err(TreeError::Busy(most));
            }
            held.waiting += 1;
            held = permits
                .freed
                .wait_timeout_while(held, WAIT, |h| h.running >= most)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            held.waiting -= 1;
            if held.running >= most {
                return Err(TreeError::Busy(most));
            }
        }
        held.running += 1;
        Ok(Permit { permits: Arc::clone(permits) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.held.lock().unwrap_or_else(PoisonError::into_inner).running -= 1;
        self.permits.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_until_another_ends() {
        let permits = Arc::new(Permits::default());
        let first = Permits::enter(&permits, 1).unwrap();
        let waiting = std::thread::spawn({
            let permits = Arc::clone(&permits);
            move || Permits::enter(&permits, 1).is_ok()
        });
        std::thread::sleep(Duration::from_millis(50));
        drop(first);
        assert!(waiting.join().unwrap());
        let _held = Permits::enter(&permits, 1).unwrap();
        assert!(matches!(Permits::enter(&permits, 1), Err(TreeError::Busy(1))));
    }
}
