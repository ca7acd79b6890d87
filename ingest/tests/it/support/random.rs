//! Numbers that look random and come again with the same seed, and how often a test tries.

/// xorshift64.
pub(crate) struct Random(u64);

impl Random {
    /// From RUNBOOK_TEST_SEED, else from the clock; the seed is printed.
    pub(crate) fn new(test: &str) -> Self {
        let seed = std::env::var("RUNBOOK_TEST_SEED").ok().and_then(|s| s.parse().ok());
        let clock = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |d| d.as_secs() << 20 | u64::from(d.subsec_micros()))
        };
        let seed = seed.unwrap_or_else(clock);
        eprintln!("{test}: RUNBOOK_TEST_SEED={seed}");
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// How often a test tries: this variable, else `usual`.
pub(crate) fn how_many(variable: &str, usual: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => usual,
    }
}
