//! Lines that stand so often in the other text that a match of them says little, and which of them are compared.

/// Times that a line may stand in the other text before it counts as a frequent one.
const FREQUENT: usize = 5;

/// What is done with a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is compared.
    Keep,
    /// It stands nowhere in the other text.
    Drop,
    /// It stands there so often that it says little.
    Maybe,
}

/// Which lines are compared. Frequent ones are left out only among lines that stand nowhere else: there a match
/// would tear a rewritten part to pieces.
pub(super) fn uses(own: &[u32], other: &[u32]) -> Vec<Use> {
    let most = own.iter().chain(other).max().map_or(0, |m| *m as usize + 1);
    let mut counts = vec![0_usize; most];
    for class in other {
        counts[*class as usize] += 1;
    }
    let mut frequent = FREQUENT;
    let mut size = own.len() / 64 / 4;
    while size > 0 {
        frequent *= 2;
        size /= 4;
    }
    let of = |class: &u32| match counts[*class as usize] {
        0 => Use::Drop,
        n if n > frequent => Use::Maybe,
        _ => Use::Keep,
    };
    let mut uses: Vec<Use> = own.iter().map(of).collect();
    let mut at = 0;
    while at < uses.len() {
        match uses[at] {
            Use::Keep => at += 1,
            Use::Maybe => {
                uses[at] = Use::Keep;
                at += 1;
            }
            Use::Drop => {
                let mut end = at + uses[at..].iter().take_while(|u| **u != Use::Keep).count();
                while uses[end - 1] == Use::Maybe {
                    end -= 1;
                    uses[end] = Use::Keep;
                }
                thin(&mut uses[at..end]);
                at = end;
            }
        }
    }
    uses
}

/// A run that begins and ends with lines to drop: which of the frequent ones within go with them.
fn thin(run: &mut [Use]) {
    let keep_all = |run: &mut [Use]| {
        run.iter_mut().filter(|u| **u == Use::Maybe).for_each(|u| *u = Use::Keep);
    };
    let frequent = run.iter().filter(|u| **u == Use::Maybe).count();
    if frequent * 4 > run.len() {
        return keep_all(run);
    }
    // A stretch of frequent lines that is long for this run says something after all.
    let mut long = 1;
    let mut size = run.len() / 4 / 4;
    while size > 0 {
        long *= 2;
        size /= 4;
    }
    long += 1;
    let mut from = 0;
    while from < run.len() {
        let stretch = run[from..].iter().take_while(|u| **u == Use::Maybe).count();
        if stretch >= long {
            keep_all(&mut run[from..from + stretch]);
        }
        from += stretch.max(1);
    }
    edge(run.iter_mut());
    edge(run.iter_mut().rev());
}

/// Near an end of the run frequent lines are kept, up to three lines to drop in a row.
fn edge<'a>(run: impl Iterator<Item = &'a mut Use>) {
    let mut in_a_row = 0;
    for (n, used) in run.enumerate() {
        match used {
            Use::Drop if n >= 8 => return,
            Use::Drop => in_a_row += 1,
            Use::Maybe => {
                *used = Use::Keep;
                in_a_row = 0;
            }
            Use::Keep => in_a_row = 0,
        }
        if in_a_row == 3 {
            return;
        }
    }
}
